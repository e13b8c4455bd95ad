//! What an object of a file of the user's may hold: keys and the shapes of their values, as data.

/// What a value may be.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A string.
    Text,
    /// A string or an array of strings, not empty.
    TextOrTexts,
    /// An array of strings.
    Texts,
    /// An object of strings.
    TextMap,
    /// An object of variables: strings, and objects for those without a value here.
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
    /// An object of named objects; the names obey NAME.
    Named(&'static Object),
    /// An array of objects, not empty.
    Objects(&'static Object),
    /// Steps: a chain as text, or an array, not empty, of such texts and of objects.
    Steps(&'static Object),
    /// Not looked into.
    Anything,
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What it may hold.
    pub shape: Shape,
    /// For the schema, the editor and the person in it.
    pub about: &'static str,
}

/// An object and its keys.
#[derive(Debug)]
pub struct Object {
    /// What it is, with its article.
    pub name: &'static str,
    /// Its definition's name in the schema.
    pub id: &'static str,
    /// All its keys.
    pub keys: &'static [Key],
    /// Those that must be there.
    pub required: &'static [&'static str],
    /// Exactly one of these must be there.
    pub one_of: &'static [&'static str],
    /// Where a string may stand for it: what that string is.
    pub text: Option<&'static str>,
}

/// A key that may be set.
#[must_use]
pub const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, about }
}
