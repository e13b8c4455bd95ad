//! The executors and prompts of a suite, each with each: the columns of the table of results.

use super::reading::{Reading, read_text};
use crate::chain::json::Reader;
use crate::eval::errors;
use crate::source::Text;

/// An executor with a prompt: a column of the table of results.
#[derive(Debug)]
pub struct Column {
    /// What distinguishes it from the others.
    pub name: String,
    /// The agent that answers the prompt, or a chain.
    pub executor: Text,
    /// The prompt.
    pub prompt: String,
}

/// Every executor with every prompt. The name has only what differs.
pub(super) fn columns(executors: &[Text], prompts: &[(String, String)]) -> Vec<Column> {
    let all = executors.iter().flat_map(|executor| prompts.iter().map(move |prompt| (executor, prompt)));
    let column = |(executor, (prompt_name, prompt)): (&Text, &(String, String))| {
        let name = match (executors.len() > 1, prompts.len() > 1) {
            (true, true) => format!("{}, {prompt_name}", executor.value),
            (_, false) => executor.value.clone(),
            (false, true) => prompt_name.clone(),
        };
        Column { name, executor: executor.clone(), prompt: prompt.clone() }
    };
    all.map(column).collect()
}

/// Reads the prompts, with their names.
pub(super) fn read_prompts(reading: &mut Reading<'_>, reader: Reader<'_>) -> Vec<(String, String)> {
    if reader.get("prompt").is_some() || reader.get("promptFile").is_some() {
        let prompt = reading.said_or_file(reader, "prompt", "promptFile");
        return prompt.into_iter().map(|prompt| ("prompt".to_string(), prompt.trim().to_string())).collect();
    }
    let mut prompts = Vec::new();
    for (number, text) in (1..).zip(reader.texts("prompts").unwrap_or_default()) {
        if text.value.trim().is_empty() {
            reading.faults.push(errors::blank(&text.at, "prompts"));
        }
        prompts.push((format!("prompt {number}"), text.value.trim().to_string()));
    }
    for file in reader.texts("promptFiles").unwrap_or_default() {
        match read_text(&reading.source.base.join(&file.value), reading.files) {
            Ok(text) if text.trim().is_empty() => reading.faults.push(errors::blank(&file.at, "promptFiles")),
            Ok(text) => prompts.push((file.value, text.trim().to_string())),
            Err(why) => reading.faults.push(errors::file_unreadable(&file.at, &file.value, &why)),
        }
    }
    prompts
}

/// Reads an agent, or several.
pub(super) fn read_agents(reading: &mut Reading<'_>, reader: Reader<'_>, key: &str, keys: &str) -> Vec<Text> {
    match (reading.said(reader, key), reader.texts(keys).filter(|all| !all.is_empty())) {
        (Some(_), Some(all)) => reading.faults.push(errors::both(&all[0].at, key, keys)),
        (Some(one), None) => return vec![one],
        (None, Some(all)) => {
            for (index, name) in all.iter().enumerate() {
                if all[..index].iter().any(|other| other.value == name.value) {
                    reading.faults.push(errors::twice(&name.at, key, &name.value));
                }
            }
            return all;
        }
        (None, None) => {}
    }
    Vec::new()
}
