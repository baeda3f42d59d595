//! How far the tables have the logs: a sequence in the row of each living log, and one row of `meta` with the takeovers of
//! all owners up to which everything is applied.
//!
//! The row of a log stays when a takeover replaces it, because other rows name it by its number; it is flagged then, so that
//! reading the marks costs what the living logs cost.

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::version::{OwnerName, TakeoverName};
use fieldstone_journal::marks::Marks;

use super::ground::id;
use super::index::Index;
use super::rows::damaged;
use super::{Cell, Database, Flow};

/// The name of the row in `meta`.
const TAKEN: &str = "taken";

impl Index {
    /// How far the logs are applied; nothing if the tables are contested, so that everything is applied again.
    pub fn watermarks(&mut self) -> Result<Marks> {
        marks(&mut *self.work.ground.db, " AND NOT EXISTS (SELECT 1 FROM meta WHERE name = 'contested')")
    }

    /// How far the logs are applied, also if the tables are contested.
    pub fn applied(&mut self) -> Result<Marks> {
        marks(&mut *self.work.ground.db, "")
    }

    /// Records that a log is applied up to `sequence`, commits and entries alike.
    pub fn set_watermark(&mut self, writer: Id, sequence: u64) -> Result<()> {
        let ground = &mut self.work.ground;
        let cells = [Cell::Int(ground.log(writer)?), Cell::Int(sequence as i64)];
        // To a host where a takeover shows late, its logs live on.
        let sql = "UPDATE log SET taken = 0, sequence = CASE WHEN sequence < $2 THEN $2 ELSE sequence END \
                   WHERE log = $1 AND (sequence < $2 OR taken = 1)";
        ground.db.execute(sql, &cells)?;
        ground.names.applied(writer, sequence);
        Ok(())
    }

    /// Records that these takeovers are applied, and replace these logs.
    pub fn set_taken(&mut self, newest: &[TakeoverName], logs: &[Id]) -> Result<()> {
        let ground = &mut self.work.ground;
        let mut known = marks(&mut *ground.db, "")?;
        known.take(newest, &[]);
        let text = known.taken.iter().map(written).collect::<Vec<_>>().join(" ");
        ground.db.execute("DELETE FROM meta WHERE name = $1", &[Cell::Text(TAKEN)])?;
        let cells = [Cell::Text(TAKEN), Cell::Text(&text)];
        ground.db.execute("INSERT INTO meta (name, value) VALUES ($1, $2)", &cells)?;
        for log in logs.iter().filter_map(|log| ground.names.known_log(*log)) {
            ground.db.execute("UPDATE log SET taken = 1 WHERE log = $1", &[Cell::Int(log.number)])?;
        }
        Ok(())
    }
}

fn marks(db: &mut dyn Database, unless: &str) -> Result<Marks> {
    // One statement, so that both parts are of one state. A log that was only named, by a decision or a removal, has no
    // mark.
    let sql = format!(
        "SELECT writer, sequence, NULL FROM log WHERE taken = 0 AND sequence > 0{unless} \
         UNION ALL SELECT NULL, 0, value FROM meta WHERE name = '{TAKEN}'{unless}"
    );
    let mut marks = Marks::default();
    db.query(&sql, &[], &mut |row| {
        match row[2].text_or_null()? {
            Some(text) => marks.taken = names_of(text)?,
            None => drop(marks.logs.insert(id(row[0].bytes()?)?, row[1].int()? as u64)),
        }
        Ok(Flow::More)
    })?;
    Ok(marks)
}

fn names_of(text: &str) -> Result<Vec<TakeoverName>> {
    let names = text.split_ascii_whitespace().map(name_of).collect::<Option<Vec<TakeoverName>>>();
    names.ok_or_else(|| damaged("holds a takeover that cannot be read"))
}

/// Owner, number and digest.
fn written(name: &TakeoverName) -> String {
    let owner = match name.owner {
        OwnerName::User(user) => format!("u{user}"),
        OwnerName::Subject(hash) => format!("s{:016x}", u64::from_be_bytes(hash)),
    };
    format!("{owner}:{}:{:016x}", name.number, name.digest)
}

fn name_of(text: &str) -> Option<TakeoverName> {
    let mut parts = text.split(':');
    let (owner, number, digest) = (parts.next()?, parts.next()?, parts.next()?);
    let owner = match owner.split_at_checked(1)? {
        ("u", user) => OwnerName::User(user.parse().ok()?),
        ("s", hash) => OwnerName::Subject(u64::from_str_radix(hash, 16).ok()?.to_be_bytes()),
        _ => return None,
    };
    let digest = u64::from_str_radix(digest, 16).ok()?;
    let name = TakeoverName { owner, number: number.parse().ok()?, digest };
    parts.next().is_none().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_takeover_comes_back_from_its_text() {
        for owner in
            [OwnerName::User(0), OwnerName::User(u32::MAX), OwnerName::Subject([255, 0, 1, 2, 3, 4, 5, 6])]
        {
            let name = TakeoverName { owner, number: 12, digest: 7 };
            assert_eq!(name_of(&written(&name)), Some(name));
        }
        for text in ["", "u", "u1:2", "u1:2:3:4", "x1:2:3", "u-1:2:3", "é:1:2"] {
            assert_eq!(name_of(text), None, "{text}");
        }
    }
}
