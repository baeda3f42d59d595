//! `fieldstone help`: the help of a verb, or a topic that several verbs share.

use clap::Args;
use fieldstone::{Code, nearest};

use crate::help::TOPICS;
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone help list
  fieldstone help schema check
  fieldstone help request

Topics: request (how to select fields), query (how to select attributes), output (tables, lines and
JSON), errors (exit codes and hints), completion (TAB for keywords and values).";

/// Print the help of a verb or of a topic
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A verb, or request, query, output, errors, completion
    #[arg(value_name = "VERB|TOPIC")]
    words: Vec<String>,
}

/// Prints it.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let mut command = crate::command();
    command.build();
    let mut found = &mut command;
    for (i, word) in arguments.words.iter().enumerate() {
        if i == 0
            && let Some((.., text)) = TOPICS.iter().find(|(name, ..)| name == word)
        {
            return out.text(text);
        }
        let topics = TOPICS.iter().map(|(name, ..)| *name).filter(|_| i == 0);
        let names: Vec<String> = found
            .get_subcommands()
            .map(|c| c.get_name().to_owned())
            .chain(topics.map(str::to_owned))
            .collect();
        let Some(next) = found.find_subcommand_mut(word) else {
            let meant = nearest::did_you_mean(word, names.iter().map(String::as_str));
            return Err(Code::CommandLine
                .error(format!("there is no verb and no topic '{word}'"))
                .with_hint(meant.unwrap_or_else(|| "try: fieldstone help".to_owned()))
                .into());
        };
        found = next;
    }
    out.text(found.render_help().to_string())
}
