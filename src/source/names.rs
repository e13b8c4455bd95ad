//! Enums whose variants have names that people read and write.

/// Gives the variants of an enum their names: `NAMES` lists all variants in the given order, `name()` returns the name
/// of a variant, and `named()` returns the variant with a name. An enum with a variant that has no name does not
/// compile.
macro_rules! names {
    ($kind:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $kind {
            /// Every variant, with its name.
            pub const NAMES: [(&'static str, Self); [$($name),+].len()] = [$(($name, Self::$variant)),+];

            /// The name of this variant, as people write it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the variant with this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, found)| *found)
            }
        }
    };
}

pub(crate) use names;
