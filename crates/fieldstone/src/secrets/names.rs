//! Names of secrets: `--password`, `DB_PW`, `apiKey`, `X-Amz-Signature`.
//!
//! Some names only denote secrets; for others the value decides, since `--pass 2`, `sort_key=step` and
//! `SSH_KEY=/home/me/.ssh/id` are ordinary words.

/// Names that contain one of these, without separators, denote secrets.
const PARTS: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "passwort",
    "secret",
    "credential",
    "apikey",
    "accesskey",
    "accountkey",
    "privatekey",
    "encryptionkey",
    "jwt",
];
/// So do names with one of these words.
const WORDS: [&str; 8] = ["token", "tokens", "bearer", "creds", "psk", "userpwd", "sastoken", "passw"];
/// So do names that end in one of these words, unless the value is plain.
const LIKELY: [&str; 7] = ["pass", "pw", "pwd", "auth", "authorization", "cookie", "cred"];
/// So do names that end in one of these words, if the value is not an ordinary word.
const POSSIBLE: [&str; 8] = ["key", "pat", "sig", "signature", "sas", "otp", "sessionid", "jsessionid"];
/// Names that end in one of these describe a secret, but are not one.
const ABOUT: [&str; 58] = [
    "manager",
    "store",
    "generator",
    "strength",
    "hint",
    "field",
    "label",
    "rotation",
    "reset",
    "check",
    "column",
    "format",
    "encoding",
    "algorithm",
    "jar",
    "type",
    "method",
    "methods",
    "mode",
    "url",
    "uri",
    "host",
    "hostname",
    "port",
    "name",
    "scheme",
    "provider",
    "expiry",
    "expires",
    "expiration",
    "ttl",
    "length",
    "len",
    "size",
    "count",
    "min",
    "max",
    "limit",
    "policy",
    "stdin",
    "prompt",
    "fd",
    "sock",
    "socket",
    "helper",
    "realm",
    "version",
    "timeout",
    "retries",
    "enabled",
    "required",
    "command",
    "cmd",
    "env",
    "dim",
    "index",
    "axis",
    "scope",
];
/// Last words of names that give the place of a secret.
const PLACES: [&str; 5] = ["file", "path", "dir", "folder", "directory"];
/// Ordinary words that end in `pass`.
const PASSES: [&str; 14] = [
    "compass",
    "bypass",
    "trespass",
    "surpass",
    "lowpass",
    "highpass",
    "bandpass",
    "allpass",
    "overpass",
    "underpass",
    "encompass",
    "multipass",
    "npass",
    "onepass",
];
/// Words before `pass` of filters and of repeated steps.
const KINDS_OF_PASS: [&str; 21] = [
    "low", "high", "band", "all", "by", "com", "one", "two", "three", "multi", "single", "first", "second",
    "third", "last", "n", "num", "per", "max", "forward", "backward",
];
/// Words before `key` that make it a secret.
const SECRET_KEYS: [&str; 24] = [
    "api",
    "access",
    "secret",
    "private",
    "account",
    "encryption",
    "master",
    "license",
    "storage",
    "ssh",
    "shared",
    "auth",
    "sign",
    "signing",
    "deploy",
    "service",
    "admin",
    "root",
    "client",
    "server",
    "session",
    "aes",
    "hmac",
    "subscription",
];
/// Words before `key` that make it an ordinary one.
const PLAIN_KEYS: [&str; 21] = [
    "primary",
    "foreign",
    "sort",
    "partition",
    "public",
    "pub",
    "host",
    "order",
    "group",
    "index",
    "map",
    "row",
    "cache",
    "routing",
    "dict",
    "lookup",
    "by",
    "on",
    "field",
    "column",
    "join",
];
/// Ordinary words that end in `key`.
const KEY_WORDS: [&str; 7] = ["monkey", "hotkey", "turkey", "donkey", "hockey", "jockey", "whiskey"];
/// Values that name an authentication scheme, or mean yes or no.
const WAYS: [&str; 22] = [
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "none",
    "null",
    "auto",
    "always",
    "never",
    "optional",
    "required",
    "basic",
    "digest",
    "bearer",
    "ntlm",
    "negotiate",
    "kerberos",
    "gssapi",
    "oauth",
    "oauth2",
];
/// Ends of names of files.
const SUFFIXES: [&str; 20] = [
    "pem", "key", "txt", "json", "yaml", "yml", "crt", "cer", "pub", "p12", "pfx", "jks", "env", "cfg",
    "ini", "conf", "dat", "nc", "csv", "toml",
];

/// How strongly a name suggests a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspicion {
    /// It does not.
    None,
    /// The value is a secret if it looks like one.
    Possible,
    /// The value is a secret unless it is a number, a path or an authentication scheme.
    Likely,
    /// The value is a secret.
    Certain,
}

/// Whether any value with this name is a secret.
pub fn is_strong(name: &str) -> bool {
    suspicion(name) == Suspicion::Certain
}

/// Whether a value with this name is a secret.
pub fn is_secret(name: &str, value: &str) -> bool {
    is_one(suspicion(name), name, value)
}

/// The same, if the name's suspicion is known.
pub fn is_one(suspicion: Suspicion, name: &str, value: &str) -> bool {
    if value.is_empty() || is_count(name, value) {
        return false;
    }
    match suspicion {
        Suspicion::None => false,
        Suspicion::Possible => !is_plain(value) && !value.contains('/') && is_mixed(value),
        Suspicion::Likely => !is_plain(value),
        Suspicion::Certain => true,
    }
}

/// The suspicion that a name raises.
pub fn suspicion(name: &str) -> Suspicion {
    let words = words(name);
    let Some(last) = words.last().map(String::as_str) else { return Suspicion::None };
    let about = ABOUT.contains(&last) || PLACES.iter().any(|place| last.ends_with(place));
    if about || words.first().is_some_and(|first| first == "no") {
        return Suspicion::None;
    }
    let joined = words.concat();
    let is_word =
        |word: &String| WORDS.contains(&word.as_str()) || word.ends_with("token") || word.ends_with("oauth");
    let is_part = |part: &&str| joined.contains(*part) && !joined.contains("secretar");
    if PARTS.iter().any(is_part) || words.iter().any(is_word) {
        return Suspicion::Certain;
    }
    let before = words.len().checked_sub(2).map(|at| words[at].as_str());
    let is_variable = !name.contains(char::is_lowercase);
    match last {
        "key" => key(before, is_variable),
        "pass" if before.is_some_and(|before| KINDS_OF_PASS.contains(&before)) => Suspicion::None,
        "pat" if before.is_some() && is_variable => Suspicion::Likely,
        _ if PASSES.contains(&last) || KEY_WORDS.contains(&last) => Suspicion::None,
        _ if LIKELY.contains(&last) => Suspicion::Likely,
        _ if POSSIBLE.contains(&last) => Suspicion::Possible,
        _ if last.ends_with("pass") || last.ends_with("auth") || is_glued_pw(last) => Suspicion::Likely,
        _ if last.ends_with("key") => {
            if is_variable {
                Suspicion::Likely
            } else {
                Suspicion::Possible
            }
        }
        _ if words.iter().any(|word| word == "pwd" || word == "auth") => Suspicion::Likely,
        _ => Suspicion::None,
    }
}

/// The suspicion of a name that ends in the word `key`.
fn key(before: Option<&str>, is_variable: bool) -> Suspicion {
    match before {
        Some(before) if PLAIN_KEYS.contains(&before) => Suspicion::None,
        Some(before) if is_variable || SECRET_KEYS.contains(&before) => Suspicion::Likely,
        _ => Suspicion::Possible,
    }
}

/// `dbpw`, `rootpw`.
fn is_glued_pw(word: &str) -> bool {
    word.strip_suffix("pw").is_some_and(|head| {
        ["db", "my", "user", "root", "admin", "bind", "ldap", "sudo", "su", "pg", "ssh", "ftp"]
            .contains(&head)
    })
}

/// The words of a name: `--apiKey_X` has api, key and x.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut joins, mut lower) = (false, false);
    for c in name.chars() {
        let begins = !joins || (lower && c.is_uppercase());
        joins = c.is_alphanumeric();
        lower = c.is_lowercase();
        match words.last_mut() {
            _ if !joins => {}
            Some(word) if !begins => word.extend(c.to_lowercase()),
            _ => words.push(c.to_lowercase().collect()),
        }
    }
    words
}

/// Whether a value is a number of tokens.
fn is_count(name: &str, value: &str) -> bool {
    name.to_lowercase().ends_with("tokens") && value.chars().all(|c| c.is_ascii_digit())
}

/// A number that is not a password, a path, or an authentication scheme.
fn is_plain(value: &str) -> bool {
    let short_number = value.parse::<f64>().is_ok() && (value.len() < 5 || value.contains('.'));
    short_number || is_path(value) || WAYS.contains(&value.to_ascii_lowercase().as_str())
}

/// Whether a value looks like the path of a file.
pub fn is_path(value: &str) -> bool {
    let begins = ["/", "./", "../", "~/", "file:", "env:", "fd:"].iter().any(|head| value.starts_with(head));
    let suffix = value.rsplit_once('.').map_or("", |(_, suffix)| suffix);
    begins || value == "." || SUFFIXES.contains(&suffix)
}

/// Whether a value has letters and digits, like keys and tokens, and is not a word.
fn is_mixed(value: &str) -> bool {
    let has = |of: fn(&char) -> bool| value.chars().any(|c| of(&c));
    value.len() >= 8 && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
        || value.len() >= 20 && has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase)
}

/// Whether a word has lower-case and upper-case letters and digits: neither an option nor a word of a language.
pub fn is_random(value: &str) -> bool {
    let has = |of: fn(&char) -> bool| value.chars().any(|c| of(&c));
    value.len() >= 8
        && has(char::is_ascii_digit)
        && has(char::is_ascii_uppercase)
        && has(char::is_ascii_lowercase)
        && !value.contains(['/', '=', ','])
}
