//! Declarations that contradict one another, as text.

use fieldstone_core::Result;

use super::declaration::StoredDeclaration;
use super::ground::Ground;
use super::order::OrderKey;
use super::{Cell, Database};

/// Writes the conflicts of a name again: declarations that differ from the oldest, and declarations by users
/// who do not own the run.
pub(super) fn note_conflicts(
    ground: &mut Ground,
    (kind, run, item): (i64, i64, i64),
    what: &str,
    kept: &[StoredDeclaration],
    others: &[StoredDeclaration],
    mut differ: impl FnMut(&StoredDeclaration, &StoredDeclaration) -> Result<bool>,
) -> Result<()> {
    let key = [kind, run, item].map(Cell::Int);
    ground.db.execute("DELETE FROM conflict WHERE kind = $1 AND run = $2 AND item = $3", &key)?;
    let by = |place: &OrderKey| format!("{} (commit {})", place.writer, place.sequence);
    let mut messages = Vec::new();
    for other in kept.iter().skip(1) {
        if differ(&kept[0], other)? {
            messages.push(format!(
                "{what} has two declarations: the one of writer {} counts, the one of writer {} does not",
                by(&kept[0].place),
                by(&other.place)
            ));
        }
    }
    for other in others {
        messages.push(format!(
            "{what} has a declaration by writer {} of user {}, who does not own the run: it does not count",
            by(&other.place),
            other.user
        ));
    }
    for (i, message) in messages.iter().enumerate() {
        let [kind, run, item] = key;
        let cells = [kind, run, item, Cell::Int(i as i64), Cell::Text(message)];
        let sql = "INSERT INTO conflict (kind, run, item, place, message) VALUES ($1, $2, $3, $4, $5)";
        ground.db.execute(sql, &cells)?;
    }
    Ok(())
}

/// The contradictions among declarations, as text. Needs a read in progress.
pub fn conflicts(db: &mut dyn Database) -> Result<Vec<String>> {
    let sql = "SELECT message FROM conflict ORDER BY kind, message";
    let mut found = db.all(sql, &[], |row| Ok(row[0].text()?.to_owned()))?;
    found.sort();
    Ok(found)
}
