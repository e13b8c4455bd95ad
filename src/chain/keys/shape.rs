//! The keys that objects in the user's files may have and the shapes of their values, as data.

/// The shape of a value.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A string.
    Text,
    /// A string or an array of strings; neither may be empty.
    TextOrTexts,
    /// An array of strings.
    Texts,
    /// An object of strings, whose keys are names of variables.
    TextMap,
    /// An object of strings, whose keys are JSON Pointers.
    PointerMap,
    /// An object of variables: strings, or objects for variables without a value here.
    Variables(&'static Object),
    /// `true` or `false`.
    Flag,
    /// A whole number from 1 to the given bound.
    Count(u32),
    /// A length of time: `90s`, `10m`, `1h30m`.
    Duration,
    /// A number above zero.
    Amount,
    /// A number from 0 to 1.
    Share,
    /// One object.
    One(&'static Object),
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// An object of named objects; the names follow the rule NAME of the grammar.
    Named(&'static Object),
    /// A non-empty array of objects.
    Objects(&'static Object),
    /// Steps: a chain as text, or a non-empty array of such texts and of objects.
    Steps(&'static Object),
    /// Any value; it is not checked.
    Anything,
}

/// A key of an object.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The key as it is written.
    pub name: &'static str,
    /// The shape of its value.
    pub shape: Shape,
    /// The description in the schema, which editors show.
    pub about: &'static str,
    /// Another name that is accepted for it.
    pub alias: Option<&'static str>,
}

impl Key {
    /// Accepts another name for this key.
    #[must_use]
    pub const fn or(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    /// Returns whether this key may be written as `name`.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.alias == Some(name)
    }
}

/// An object and its keys.
#[derive(Debug)]
pub struct Object {
    /// The name of the object in messages, with its article.
    pub name: &'static str,
    /// The name of its definition in the schema.
    pub id: &'static str,
    /// All keys of the object.
    pub keys: &'static [Key],
    /// The keys that must be present.
    pub required: &'static [&'static str],
    /// Exactly one of these keys must be present.
    pub one_of: &'static [&'static str],
    /// The description of the string that the object may be written as; none if it cannot be.
    pub text: Option<&'static str>,
}

/// Creates a key.
#[must_use]
pub const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, about, alias: None }
}
