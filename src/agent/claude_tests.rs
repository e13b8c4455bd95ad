//! The stream of a real run, shortened to the fields that are read.

use super::*;

const STREAM: &str = r#"{"type":"system","subtype":"init","session_id":"4ea9885e","model":"m"}
{"type":"assistant","parent_tool_use_id":null,"message":{"content":[{"type":"text","text":"I will write the file."},{"type":"tool_use","name":"Bash","input":{"command":"printf 'hello\\n' > hello.txt\nls"}}]}}
{"type":"user","parent_tool_use_id":null,"message":{"content":[{"type":"tool_result","content":"FORKHESTRA_COMPLETE"}]}}
{"type":"assistant","parent_tool_use_id":"toolu_1","message":{"content":[{"type":"text","text":"a sub-agent"}]}}
{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"error_status":529}
not JSON
{"type":"assistant","parent_tool_use_id":null,"message":{"content":[{"type":"text","text":"Done: ünï 🚀\n\nFORKHESTRA_COMPLETE\n"}]}}
{"type":"result","subtype":"success","is_error":false,"result":"Done: ünï 🚀\n\nFORKHESTRA_COMPLETE\n","session_id":"4ea9885e","total_cost_usd":0.01,"usage":{"input_tokens":2000,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":100},"permission_denials":[{"tool_name":"Bash"}]}
"#;

fn read(chunks: &[&[u8]]) -> (String, Report) {
    let (mut reader, mut shown) = (ClaudeReader::default(), String::new());
    for chunk in chunks {
        reader.feed(chunk, &mut |text| shown.push_str(text));
    }
    let report = reader.finish(&mut |text| shown.push_str(text));
    (shown, report)
}

#[test]
fn text_final_message_usage_and_denials_are_read() {
    let (shown, report) = read(&[STREAM.as_bytes()]);
    assert_eq!(
        shown,
        "I will write the file.\n[Bash] printf 'hello\\n' > hello.txt …\n[claude waits: error 529, attempt 1 of 10]\nnot \
         JSON\nDone: ünï 🚀\n\nFORKHESTRA_COMPLETE\n"
    );
    assert_eq!(report.final_message.as_deref(), Some("Done: ünï 🚀\n\nFORKHESTRA_COMPLETE\n"));
    let usage = Usage {
        input_tokens: 2000,
        output_tokens: 100,
        cache_read_tokens: 7,
        cache_write_tokens: 5,
        cost_usd: Some(0.01),
    };
    assert_eq!(report.usage, Some(usage));
    assert_eq!((report.denials, report.session, report.error), (vec!["Bash".into()], Some("4ea9885e".into()), None));
}

#[test]
fn a_stream_cut_at_every_byte_reads_the_same() {
    let whole = read(&[STREAM.as_bytes()]);
    for cut in 0..STREAM.len() {
        let (head, tail) = STREAM.as_bytes().split_at(cut);
        assert_eq!(read(&[head, tail]), whole, "cut at {cut}");
        // A stream that ends there: no panic, and no final message made up.
        let (_, report) = read(&[head]);
        assert!(report.final_message.is_none() || cut >= STREAM.trim_end().len(), "cut at {cut}");
    }
}

#[test]
fn an_error_is_told_in_the_programs_words() {
    let (_, report) = read(&[br#"{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["Reached maximum number of turns (1)"]}"#]);
    assert_eq!(report.error.as_deref(), Some("Reached maximum number of turns (1)"));
    let (_, report) = read(&[br#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 401"}"#]);
    assert_eq!(report.error.as_deref(), Some("API Error: 401"));
}
