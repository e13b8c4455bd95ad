//! The JSON Schema of a criterion.

use super::one_line;
use crate::eval::cost::is_bounded;
use boon::{Compiler, SchemaIndex, Schemas, UrlLoader};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::error::Error;

/// A compiled JSON Schema.
pub struct JsonSchema {
    source: Value,
    schemas: Schemas,
    index: SchemaIndex,
}

impl Serialize for JsonSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

impl std::fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.source)
    }
}

/// A schema may refer only to itself: nothing is fetched without the user's knowledge.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("{url} is another file, and only references within the schema are followed").into())
    }
}

impl JsonSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub(in crate::eval) fn new(schema: Value) -> Result<Self, String> {
        const URL: &str = "mem:///schema.json";
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.use_loader(Box::new(NoLoader));
        compiler.add_resource(URL, schema.clone()).map_err(|error| one_line(&error.to_string()))?;
        let index = compiler.compile(URL, &mut schemas).map_err(|error| {
            let words = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            one_line(&words)
        })?;
        Ok(Self { source: schema, schemas, index })
    }

    /// Returns the first thing that is wrong, and where.
    pub(super) fn fault(&self, value: &Value) -> Option<String> {
        if !is_bounded(&self.source, value) {
            return Some("it cannot be checked: the schema has too many branches for a value this deep".into());
        }
        let error = self.schemas.validate(value, self.index).err()?;
        let mut leaf = &error;
        while let Some(cause) = leaf.causes.first() {
            leaf = cause;
        }
        let place = leaf.instance_location.to_string();
        let place = if place.is_empty() { "the whole value".into() } else { format!("`{place}`") };
        Some(format!("{place}: {}", one_line(&leaf.kind.to_string())))
    }
}
