//! What is said about a result. Most results have nothing to say, and there may be very many.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Deref;

/// What is wrong with an output, or why it was not judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RemarkTexts {
    /// What is wrong with the output.
    pub issues: Vec<String>,
    /// Suggestions for how to fix the issues.
    pub suggestions: Vec<String>,
    /// How many issues and suggestions were dropped because they quoted a case.
    pub dropped: usize,
    /// Why the case was not judged; `null` if it was.
    pub error: Option<String>,
}

static NONE: RemarkTexts = RemarkTexts { issues: Vec::new(), suggestions: Vec::new(), dropped: 0, error: None };

/// The remarks on a result. They take no memory if there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks(Option<Box<RemarkTexts>>);

impl From<RemarkTexts> for Remarks {
    fn from(texts: RemarkTexts) -> Self {
        Self((texts != NONE).then(|| Box::new(texts)))
    }
}

impl Deref for Remarks {
    type Target = RemarkTexts;

    fn deref(&self) -> &RemarkTexts {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl Serialize for Remarks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Remarks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RemarkTexts::deserialize(deserializer).map(Into::into)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Remarks {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        RemarkTexts::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        RemarkTexts::json_schema(generator)
    }
}
