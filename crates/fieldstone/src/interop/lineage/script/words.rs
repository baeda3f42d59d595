//! Texts for `sh`: words, comments, variables, secrets.

use fieldstone_core::value::Value;

use crate::interop::lineage::export::names::short;

/// A text as one word of sh.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '@' | '+' | '%')
    };
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The text before and after a command that redirects its input and output to the files of its recorded streams. Output
/// only goes to a file that `is_needed`, under its name or the one that the command gave it: other output was a log of
/// its time, which stays.
pub fn redirections(streams: Option<&Value>, is_needed: &dyn Fn(&str) -> bool) -> (String, String) {
    let (mut before, mut behind, mut redirected) = (String::new(), String::new(), false);
    let Some(Value::Map(streams)) = streams else { return (before, behind) };
    for (name, number) in [("stdin", "0"), ("stdout", "1"), ("stderr", "2")] {
        let Some((_, Value::Map(facts))) = streams.iter().find(|(known, _)| known == name) else { continue };
        let get = |name: &str| facts.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        let (Some(Value::Text(path)), Some(Value::Text(mode))) = (get("path"), get("mode")) else { continue };
        let renamed = match get("renamed") {
            Some(Value::Text(renamed)) => is_needed(renamed),
            _ => false,
        };
        if name != "stdin" && mode != "stdout" && !renamed && !is_needed(path) {
            continue;
        }
        redirected |= name == "stdout";
        // Standard input and output need no number in a redirection.
        let named = if number == "2" { "2" } else { "" };
        match (name, mode.as_str(), get("offset")) {
            ("stdin", _, Some(Value::Int(offset))) if *offset > 0 => {
                before = format!("tail -c +{} -- {} | ", offset.saturating_add(1), quoted(path));
            }
            ("stdin", ..) => behind.push_str(&format!(" < {}", quoted(path))),
            (_, "write", _) => behind.push_str(&format!(" {named}> {}", quoted(path))),
            (_, "append", _) => behind.push_str(&format!(" {named}>> {}", quoted(path))),
            (_, "update", _) => behind.push_str(&format!(" {number}<> {}", quoted(path))),
            ("stderr", "stdout", _) if redirected => behind.push_str(" 2>&1"),
            _ => {}
        }
    }
    (before, behind)
}

/// Whether the input came through a pipe.
pub fn is_piped(streams: Option<&Value>) -> bool {
    let Some(Value::Map(streams)) = streams else { return false };
    streams.iter().any(|(name, facts)| match facts {
        Value::Map(facts) => {
            name == "stdin" && facts.contains(&("mode".to_owned(), Value::Text("pipe".to_owned())))
        }
        _ => false,
    })
}

/// Paths of the files that held the output of a command.
pub fn outputs(streams: Option<&Value>) -> Vec<&str> {
    let Some(Value::Map(streams)) = streams else { return Vec::new() };
    let mut paths = Vec::new();
    for (_, facts) in streams.iter().filter(|(name, _)| name != "stdin") {
        let Value::Map(facts) = facts else { continue };
        let path = facts.iter().find(|(known, _)| known == "path");
        if let Some((_, Value::Text(path))) = path {
            paths.push(path.as_str());
        }
    }
    paths
}

/// A text for a comment, or a message: one line of it.
pub fn line(text: &str) -> String {
    short(text, 500)
}

/// Whether a name is valid for a variable of sh, and the script does not use it itself.
pub fn is_variable(name: &str) -> bool {
    let mut chars = name.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let readonly = matches!(
        name,
        "PPID" | "UID" | "EUID" | "BASHOPTS" | "SHELLOPTS" | "BASH_VERSINFO" | "IFS" | "_" | "PWD" | "OLDPWD"
    );
    first && !readonly && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Literal text, and placeholders of secrets, `${FIELDSTONE_SECRET_1}`.
pub fn pieces(word: &str) -> Vec<std::result::Result<&str, &str>> {
    const OPEN: &str = "${FIELDSTONE_SECRET_";
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        if digits == 0 || !after[digits..].starts_with('}') {
            // It only begins like one.
            let end = before.len() + OPEN.len();
            pieces.push(Ok(&rest[..end]));
            rest = &rest[end..];
            continue;
        }
        if !before.is_empty() {
            pieces.push(Ok(before));
        }
        let whole = before.len()..before.len() + OPEN.len() + digits + 1;
        pieces.push(Err(&rest[whole.clone()]));
        rest = &rest[whole.end..];
    }
    if !rest.is_empty() {
        pieces.push(Ok(rest));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_so_that_sh_takes_them_as_they_are() {
        for (text, word) in [
            ("a.nc", "a.nc"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(rm x)", "'$(rm x)'"),
            ("it's", r"'it'\''s'"),
            ("~", "'~'"),
            ("é\n", "'é\n'"),
        ] {
            assert_eq!(quoted(text), word);
        }
        assert_eq!(line("a\nrm -r /\u{1b}"), "a\u{fffd}rm -r /\u{fffd}");
    }

    #[test]
    fn streams_are_redirected_as_a_shell_writes_it() {
        let text = |text: &str| Value::Text(text.to_owned());
        let stream = |name: &str, path: &str, mode: &str, offset: Option<i64>| {
            let mut facts = vec![("path".to_owned(), text(path)), ("mode".to_owned(), text(mode))];
            facts.extend(offset.map(|offset| ("offset".to_owned(), Value::Int(offset))));
            (name.to_owned(), Value::Map(facts))
        };
        let around = |streams: Vec<(String, Value)>| redirections(Some(&Value::Map(streams)), &|_| true);
        let (before, behind) = around(vec![
            stream("stderr", "/log", "append", None),
            stream("stdin", "/a b", "read", None),
            stream("stdout", "/it's", "write", None),
        ]);
        assert_eq!((&*before, &*behind), ("", r" < '/a b' > '/it'\''s' 2>> /log"));
        let (before, behind) =
            around(vec![stream("stdin", "/in", "read", Some(9)), stream("stdout", "/out", "update", None)]);
        assert_eq!((&*before, &*behind), ("tail -c +10 -- /in | ", " 1<> /out"));
        let both = vec![stream("stdout", "/o", "append", None), stream("stderr", "/o", "stdout", None)];
        assert_eq!(around(both).1, " >> /o 2>&1");
        assert_eq!(around(vec![stream("stdout", "/o", "$(x)", None)]).1, "");
        assert_eq!(redirections(Some(&text("> /o")), &|_| true), redirections(None, &|_| true));
        let logs = Value::Map(vec![
            stream("stdin", "/in", "read", None),
            stream("stdout", "/result", "write", None),
            stream("stderr", "/log", "append", None),
        ]);
        assert_eq!(redirections(Some(&logs), &|path| path == "/result").1, " < /in > /result");
        assert_eq!(redirections(Some(&logs), &|_| false).1, " < /in");
        let piped =
            Value::Map(vec![("stdin".to_owned(), Value::Map(vec![("mode".to_owned(), text("pipe"))]))]);
        assert!(is_piped(Some(&piped)) && !is_piped(Some(&logs)) && !is_piped(None));
        assert_eq!(redirections(Some(&piped), &|_| true).1, "");
        assert_eq!(outputs(Some(&logs)), ["/result", "/log"]);
    }

    #[test]
    fn secrets_are_distinguished_from_text_that_only_begins_like_one() {
        let word = "--u=${FIELDSTONE_SECRET_1}@h/${FIELDSTONE_SECRET_}${FIELDSTONE_SECRET_12}";
        let secret = |text: &'static str| Err(text);
        assert_eq!(
            pieces(word),
            [
                Ok("--u="),
                secret("${FIELDSTONE_SECRET_1}"),
                Ok("@h/${FIELDSTONE_SECRET_"),
                Ok("}"),
                secret("${FIELDSTONE_SECRET_12}")
            ]
        );
        assert!(pieces("").is_empty());
    }

    #[test]
    fn only_names_of_variables_are_exported() {
        assert!(is_variable("OMP_NUM_THREADS") && is_variable("_x1"));
        for wrong in ["", "1x", "BASH_FUNC_a%%", "a b", "é", "x;rm", "UID", "PWD"] {
            assert!(!is_variable(wrong), "{wrong}");
        }
    }
}
