//! The function that a shell runs at TAB: it asks the program itself. The scripts know neither verbs nor options, so
//! a new version of the program needs no new scripts.

/// A supported shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

impl Shell {
    /// Its script.
    pub fn script(self) -> &'static str {
        match self {
            Shell::Bash => BASH,
            Shell::Zsh => ZSH,
            Shell::Fish => FISH,
        }
    }
}

const BASH: &str = r#"# Completion of fieldstone for bash: fieldstone help completion
_fieldstone() {
    COMPREPLY=()
    local line
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <("${1/#\~/$HOME}" __complete bash "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    # A keyword or a folder goes on: no blank behind it.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
}
complete -o nosort -F _fieldstone fieldstone 2>/dev/null || complete -F _fieldstone fieldstone
"#;

const ZSH: &str = r#"#compdef fieldstone
# Completion of fieldstone for zsh: fieldstone help completion
_fieldstone() {
    local line word about
    local -a ends ends_about open open_about
    while IFS= read -r line; do
        word=${line%%$'\t'*}
        about=$word
        [[ $line == *$'\t'* ]] && about="$word  -- ${line#*$'\t'}"
        # A keyword or a folder goes on: no blank behind it.
        if [[ $word == *[=/] ]]; then
            open+=("$word") open_about+=("$about")
        else
            ends+=("$word") ends_about+=("$about")
        fi
    done < <("${(Q)words[1]/#\~/$HOME}" __complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    (( $#open )) && compadd -V fieldstone -S '' -l -d open_about -a -- open
    (( $#ends )) && compadd -V fieldstone -l -d ends_about -a -- ends
    return 0
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _fieldstone "$@"
else
    compdef _fieldstone fieldstone
fi
"#;

const FISH: &str = r#"# Completion of fieldstone for fish: fieldstone help completion
function __fieldstone_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct | string trim --left --chars="\"'")
    $words[1] __complete fish $words[2..-1] "$current" 2>/dev/null
end
complete -c fieldstone -f -k -a '(__fieldstone_complete)'
"#;
