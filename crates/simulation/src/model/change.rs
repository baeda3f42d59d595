//! Commits of the model, and the changes in them.

/// The number of a commit, in the order in which they were asked for.
pub type CommitId = u32;

/// The shape of all arrays.
pub const SHAPE: [u64; 2] = [3, 5];
/// The number of their elements.
pub const CELLS: usize = 15;

/// A commit: one flush, or a decision.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The user.
    pub user: u32,
    /// The place of its attempt among all attempts, if it has one.
    pub attempt: Option<u32>,
    /// The transaction to which it belongs, or on which it decides.
    pub transaction: Option<u32>,
    /// The content.
    pub content: Content,
}

/// The content of a commit.
#[derive(Debug, Clone)]
pub enum Content {
    /// Changes, in order.
    Changes(Vec<Change>),
    /// A transaction is committed, or aborted.
    Decision(bool),
    /// The fields of a run are wiped, or of one variable of it, unless they are all too young for it.
    Wipe(String, Option<String>, bool),
    /// The fields of a run are hidden, or of one variable of it.
    Hide(String, Option<String>),
    /// All that somebody hid of a run is shown again.
    Show(String),
}

/// The key of a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The run: the dataset.
    pub run: String,
    /// The variable; `o` holds opaque bytes, the others arrays.
    pub variable: String,
    /// The step.
    pub step: i64,
}

impl Key {
    /// Whether its fields are opaque bytes.
    pub fn is_opaque(&self) -> bool {
        self.variable == "o"
    }

    /// As the store shows it.
    pub fn text(&self) -> String {
        format!("{{run={}}}{{variable={}}}{{step={}}}", self.run, self.variable, self.step)
    }
}

/// A change of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Opaque bytes: the seed of their pattern, and their number.
    Bytes(u64, usize),
    /// An array of one value.
    Whole(i32),
    /// A created array, with its fill.
    Create(i32),
    /// A piece: start, count, value.
    Piece([u64; 2], [u64; 2], i32),
    /// A removal.
    Remove,
    /// A change that was wiped: it only names its attempt.
    Wiped,
    /// A change that these hides hide: meanwhile it only names its attempt.
    Hidden(Vec<CommitId>, Box<What>),
}

/// The place of an attribute; its user is the commit's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttributePlace {
    /// The run.
    pub run: String,
    /// The tag.
    pub tag: String,
    /// The step, if it is on one.
    pub step: Option<i64>,
    /// The variable, if it is on one.
    pub variable: Option<String>,
}

/// The type of a relation, its source and its target.
pub type Link = (String, String, String);

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A field.
    Field(Key, What),
    /// A run that is declared, with variables.
    Run(String, Vec<String>),
    /// A step that is declared.
    Step(String, i64),
    /// An attribute, with its value in quarters.
    Attribute(AttributePlace, i64),
    /// Attributes that are deleted: commits, and places of changes in them.
    Erase(Vec<(CommitId, usize)>),
    /// A version of a relation: its stamp, and whether it is a deletion.
    Relation(Link, u64, bool),
}

impl Change {
    /// Bytes of its field.
    pub fn bytes(&self) -> usize {
        match self {
            Change::Field(_, What::Bytes(_, length)) => *length,
            Change::Field(..) => 4 * CELLS,
            _ => 0,
        }
    }
}
