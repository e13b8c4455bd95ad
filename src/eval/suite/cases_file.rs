//! `casesFile`: cases in a file of their own, as CSV, as lines of JSON, or as an array.

use crate::source::{Source, Span};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// The columns of a CSV file that are keys of a case. All others are its variables.
const COLUMNS: [&str; 13] = [
    "id",
    "text",
    "textFile",
    "tree",
    "commit",
    "hidden",
    "output",
    "outputFile",
    "label",
    "expected",
    "expectedFile",
    "repeat",
    "tags",
];
/// Separates the tags in a column.
const BETWEEN_TAGS: char = ';';

/// The text of a file of cases.
#[derive(Debug)]
pub(super) struct CaseRows {
    pub(super) source: Arc<Source>,
    /// Where each case is in the source; none if it is an array, which is parsed as a whole.
    pub(super) rows: Option<Vec<Span>>,
}

/// Returns the cases of a file, each on the line of the file on which it begins.
///
/// # Errors
/// Why it is not a file of cases.
pub(super) fn rows_of(name: &str, text: String, base: &Path) -> Result<CaseRows, String> {
    let extension = Path::new(name).extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let (text, rows) = match extension.as_str() {
        "json" | "json5" => (format!("{{\"cases\": {}\n}}", text.trim_end()), None),
        "jsonl" | "ndjson" => {
            let rows = lines(&text);
            (text, Some(rows))
        }
        "csv" => {
            let (text, rows) = of_table(&text)?;
            (text, Some(rows))
        }
        _ => return Err("a file of cases is a .jsonl, .csv, .json or .json5 file".into()),
    };
    if rows.as_ref().is_some_and(Vec::is_empty) {
        return Err("it has no cases: only its first line, or nothing".into());
    }
    Ok(CaseRows { source: Source::new(name, text, base), rows })
}

/// Returns the lines that are not blank.
fn lines(text: &str) -> Vec<Span> {
    let mut start = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let span = start..start + line.trim_end_matches(['\n', '\r']).len();
        start += line.len();
        span
    });
    lines.filter(|span| !text[span.clone()].trim().is_empty()).collect()
}

/// Returns the rows of a table as JSON, each on its line.
fn of_table(text: &str) -> Result<(String, Vec<Span>), String> {
    check_quotes(text)?;
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let columns: Vec<String> = reader.headers().map_err(|error| words(&error))?.iter().map(str::to_string).collect();
    check_columns(&columns)?;
    let (mut cases, mut rows, mut line) = (String::new(), Vec::new(), 1);
    for (number, row) in (1..).zip(reader.into_records()) {
        let row = row.map_err(|error| words(&error))?;
        let begins = row.position().map_or(line, csv::Position::line);
        while line < begins {
            cases.push('\n');
            line += 1;
        }
        let start = cases.len();
        cases.push_str(&case_of(number, &columns, &row).to_string());
        rows.push(start..cases.len());
    }
    Ok((cases, rows))
}

/// Refuses a quote that is not closed: it would take all rows up to the next quote into its cell (RFC 4180, 2.5-2.7).
fn check_quotes(text: &str) -> Result<(), String> {
    // The line of the quote that the cell begins with, and whether the sign before may have closed it.
    let (mut open, mut closed, mut begins, mut line) = (None, false, true, 1);
    for sign in text.trim_start_matches('\u{feff}').chars() {
        let ends = matches!(sign, ',' | '\n' | '\r');
        match (open, sign) {
            (None, '"') if begins => open = Some(line),
            (Some(_), '"') => closed = !closed,
            (Some(_), _) if closed && ends => (open, closed) = (None, false),
            (Some(line), _) if closed => {
                return Err(format!(
                    "the quote on line {line} is closed within its cell; a quote in a cell is written twice"
                ));
            }
            _ => {}
        }
        begins = open.is_none() && ends;
        line += usize::from(sign == '\n');
    }
    match open {
        Some(line) if !closed => Err(format!("the quote on line {line} is not closed")),
        _ => Ok(()),
    }
}

/// Refuses columns that would be taken for something else than they mean.
fn check_columns(columns: &[String]) -> Result<(), String> {
    for (index, column) in columns.iter().enumerate() {
        if columns[..index].contains(column) {
            return Err(format!("it has two columns `{column}`"));
        }
        let near = COLUMNS.iter().find(|key| key.eq_ignore_ascii_case(column.trim()) && *key != column);
        if let Some(key) = near {
            return Err(format!("it has a column `{column}`: did you mean `{key}`?"));
        }
    }
    Ok(())
}

fn case_of(number: u64, columns: &[String], row: &csv::StringRecord) -> Value {
    let (mut case, mut vars) = (Map::new(), Map::new());
    case.insert("id".into(), number.to_string().into());
    for (column, cell) in columns.iter().zip(row).filter(|(_, cell)| !cell.trim().is_empty()) {
        match column.as_str() {
            "tags" => {
                let tags = cell.split(BETWEEN_TAGS).map(str::trim).filter(|tag| !tag.is_empty()).map(Value::from);
                case.insert("tags".into(), tags.collect());
            }
            // What is no number is reported where all keys are checked.
            "repeat" => {
                let count = cell.trim().parse::<u32>().map_or_else(|_| Value::from(cell), Value::from);
                case.insert("repeat".into(), count);
            }
            column if COLUMNS.contains(&column) => {
                case.insert(column.into(), cell.into());
            }
            column => {
                vars.insert(column.into(), cell.into());
            }
        }
    }
    // An output that is empty can be labelled all the same.
    if case.contains_key("label") && columns.iter().any(|column| column == "output") && !case.contains_key("outputFile")
    {
        case.entry("output").or_insert_with(|| "".into());
    }
    if !vars.is_empty() {
        case.insert("vars".into(), vars.into());
    }
    case.into()
}

fn words(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or(0, csv::Position::line);
            format!("line {line} has {len} columns, and the first line has {expected_len}")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<String, String> {
        let CaseRows { source, rows } = rows_of(name, text.to_string(), Path::new("/"))?;
        let line = |row: &Span| source.text[..row.start].matches('\n').count() + 1;
        let shown = |row: &Span| format!("{}: {}", line(row), &source.text[row.clone()]);
        Ok(rows.map_or_else(|| source.text.clone(), |rows| rows.iter().map(shown).collect::<Vec<_>>().join("\n")))
    }

    #[test]
    fn every_case_stays_on_its_line() {
        let csv = "text,expected,tone,tags\nhello,HELLO,loud,a; b\n\"two\nlines\",x,,\nlast,,,\n";
        insta::assert_snapshot!(read("cases.csv", csv).unwrap(), @r#"
        2: {"id":"1","text":"hello","expected":"HELLO","tags":["a","b"],"vars":{"tone":"loud"}}
        3: {"id":"2","text":"two\nlines","expected":"x"}
        5: {"id":"3","text":"last"}
        "#);
        let lines = "{\"id\": \"1\"}\r\n\n{\"id\": \"2\"}\n\n";
        insta::assert_snapshot!(read("cases.jsonl", lines).unwrap(), @r#"
        1: {"id": "1"}
        3: {"id": "2"}
        "#);
        assert_eq!(read("cases.json", "[{}]\n").unwrap(), "{\"cases\": [{}]\n}");
    }

    #[test]
    fn a_row_with_another_number_of_columns_is_named_by_its_line() {
        let why = read("cases.csv", "text,expected\na,b\nc,\"d\ne,f\n").unwrap_err();
        assert_eq!(why, "the quote on line 3 is not closed");
        let why = read("cases.csv", "text\n\"abc\n2,\"def\"\n").unwrap_err();
        assert_eq!(why, "the quote on line 2 is closed within its cell; a quote in a cell is written twice");
        assert!(read("cases.csv", "\"text\n1\n").unwrap_err().contains("line 1 is not closed"));
        let good = "text,expected\n\"a \"\"b\"\"\nc\",\"\"\r\n5\" pipe,\"d\"";
        assert!(read("cases.csv", good).is_ok());
        let why = read("cases.csv", "text,expected\na,b\nc\n").unwrap_err();
        assert_eq!(why, "line 3 has 1 columns, and the first line has 2");
        assert_eq!(read("cases.csv", "text,text\na,b\n").unwrap_err(), "it has two columns `text`");
        assert_eq!(read("cases.csv", "Text\na\n").unwrap_err(), "it has a column `Text`: did you mean `text`?");
        assert!(read("cases.csv", "text\n").unwrap_err().starts_with("it has no cases"));
        assert!(read("cases.jsonl", "\n").unwrap_err().starts_with("it has no cases"));
        assert!(read("cases.txt", "").unwrap_err().contains(".jsonl, .csv"));
    }
}
