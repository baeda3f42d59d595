//! Random histories: the logs of a few processes, in files on a simulated machine or as objects, with side
//! records, fields, removals and transactions, and the store as it was with any part of each log.
//!
//! The same seed gives the same history. The caller decides the content of side records; this module finds the
//! standing fields in the plainest way, from all entries at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::dtype::DType;
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::{Random, SimWorld};
use fieldstone_core::glob::Glob;
use fieldstone_core::key::FieldKey;
use fieldstone_core::request::{Item, Request, Values, Wanted};
use fieldstone_core::schema::Schema;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::entry::{ArrayInfo, Entry, Location};
use fieldstone_format::keys::encode_key;
use fieldstone_format::log::{SideRecord, kinds};
use fieldstone_format::version::Version;

use crate::Journal;
use crate::compact::CompactOptions;
use crate::feed::{EntryChange, EntryEffect, Feed, TransactionState};
use crate::follower::{FieldLookup, HeldField};
use crate::journal::JournalOptions;
use crate::medium::objects::{ObjectMedium, Objects};
use crate::session::Session;
use crate::snapshot::Order;
use crate::writer::{Encoded, Payload};

/// The store's folder on the simulated machine.
const ROOT: &str = "/store";
/// Processes, each with the user it runs as.
const PROCESSES: [(&str, u32); 4] = [("a", 1), ("b", 1), ("c", 1), ("d", 2)];

/// A store with one transaction and its decision.
#[derive(Debug)]
pub struct OneTransaction {
    /// The store.
    pub history: History,
    /// The transaction.
    pub transaction: Id,
    /// The logs before it was decided.
    pub prepared: Vec<(Id, u64)>,
    /// Whether it was committed, not aborted.
    pub committed: bool,
}

/// Gives side records for a commit. `heads`: the logs, each with the last commit made so far.
pub type Side<'a> = &'a mut dyn FnMut(&mut Random, &[(Id, u64)]) -> Vec<SideRecord>;

/// A store that was written at random.
#[derive(Debug)]
pub struct History {
    world: SimWorld,
    journals: Vec<Journal>,
    schema: Schema,
    env: Env,
    /// Transactions that were begun; some are decided.
    transactions: Vec<Id>,
    heads: Vec<(Id, u64)>,
    /// Whether much is decided about little.
    decisive: bool,
}

impl History {
    /// Some ten to forty commits of up to four processes; `shared`: of two users.
    pub fn random(dice: &mut Random, shared: bool, side: Side<'_>) -> Result<History> {
        let mut history = History::new(dice, shared, true)?;
        history.decisive = dice.one_in(3);
        let steps = 10 + dice.below(30);
        history.go_on(dice, steps, side)?;
        Ok(history)
    }

    /// A store in a folder, without a commit: its logs can be closed, and taken over.
    pub fn begun(dice: &mut Random, shared: bool) -> Result<History> {
        History::new(dice, shared, false)
    }

    /// Some more calls of its processes.
    pub fn go_on(&mut self, dice: &mut Random, steps: u64, side: Side<'_>) -> Result<()> {
        for _ in 0..steps {
            self.world.advance(2_000_000_000);
            let clock = dice.below(7_200) as i64 - 3_600;
            self.world.set_clock_offset(PROCESSES[dice.below(4) as usize].0, clock * 1_000_000_000);
            self.step(dice, side)?;
            self.heads = self.journals[0].looks().snapshot()?.heads();
        }
        for journal in &self.journals {
            journal.unflushed().discard(&Session::default());
        }
        self.look()
    }

    /// Closes some logs.
    pub fn close_some(&mut self, dice: &mut Random) -> Result<()> {
        let mut journals = self.journals.iter().filter(|_| dice.one_in(2));
        journals.try_for_each(|journal| journal.close(&Session::default()))
    }

    /// One more log: a commit with these side records, and closed.
    pub fn add_log(&mut self, records: Vec<SideRecord>) -> Result<()> {
        self.world.advance(2_000_000_000);
        let journal = &self.journals[0];
        journal.unflushed().add(records, &Session::default())?;
        journal.committer().flush(&Session::default())?;
        journal.close(&Session::default())?;
        self.look()
    }

    /// Takes over all logs that have ended.
    pub fn take_over(&mut self) -> Result<()> {
        let options = CompactOptions { grace: 0, ..CompactOptions::default() };
        for journal in &self.journals {
            // Changes of one folder within one tick of a clock may pass unseen.
            self.world.advance(2_000_000_000);
            journal.maintenance().compact(&options, &Session::default(), &mut |_| Ok(()))?;
        }
        self.look()
    }

    /// One transaction that two processes joined, with a field at least, and its decision.
    pub fn of_one_transaction(dice: &mut Random, side: Side<'_>) -> Result<OneTransaction> {
        let mut history = History::new(dice, false, true)?;
        let [opener, joined, ..] = &history.journals[..] else {
            return Err(Error::internal("there are not two processes"));
        };
        let (transaction, committed) = (opener.transactions().begin()?, !dice.one_in(4));
        for _ in 0..1 + dice.below(4) {
            let journal = if dice.one_in(2) { opener } else { joined };
            journal.unflushed().add(side(dice, &history.heads), &Session::from(transaction))?;
            for _ in 0..dice.below(3) {
                journal.committer().take(value(dice, &history.schema)?, &Session::from(transaction))?;
            }
            journal.committer().flush(&Session::from(transaction))?;
            history.heads = opener.looks().snapshot()?.heads();
        }
        // Nothing removes the last one.
        joined.committer().take(field(dice, &history.schema)?, &Session::from(transaction))?;
        joined.committer().flush(&Session::from(transaction))?;
        let prepared = opener.looks().snapshot()?.heads();
        opener.transactions().decide(transaction, committed, &Session::default())?;
        history.transactions.push(transaction);
        history.look()?;
        Ok(OneTransaction { history, transaction, prepared, committed })
    }

    /// Looks at all logs.
    fn look(&mut self) -> Result<()> {
        self.journals[0].looks().refresh()?;
        self.heads = self.journals[0].looks().snapshot()?.heads();
        Ok(())
    }

    /// An empty store, in a folder or perhaps as objects, and a handle of each process.
    fn new(dice: &mut Random, shared: bool, may_be_objects: bool) -> Result<History> {
        let world = SimWorld::new(dice.below(u64::MAX));
        for (host, user) in PROCESSES {
            world.set_uid(host, if shared { user } else { 1 });
        }
        let objects = (may_be_objects && dice.one_in(2)).then(|| Arc::new(Objects::default()));
        if objects.is_none() {
            make_shared_folders(&world)?;
        }
        let schema = Schema::builtin("simulation").ok_or_else(|| Error::internal("no schema"))?;
        let env = world.process("reader");
        let open = |env: Env| {
            let options = JournalOptions {
                url: ROOT.into(),
                writable: true,
                schema: Some(schema.clone()),
                ..JournalOptions::default()
            };
            match &objects {
                Some(objects) => {
                    let medium = ObjectMedium::new(env.clone(), objects.clone());
                    Journal::over(env, Arc::new(medium), options)
                }
                None => Journal::open(env, Path::new(ROOT), options),
            }
        };
        let journals: Vec<Journal> =
            PROCESSES.iter().map(|(host, _)| open(world.process(host))).collect::<Result<_>>()?;
        let (transactions, heads) = (Vec::new(), Vec::new());
        Ok(History { world, journals, schema, env, transactions, heads, decisive: false })
    }

    /// One call of one process. Refusals do not count: something belongs to another user, or has ended.
    fn step(&mut self, dice: &mut Random, side: Side<'_>) -> Result<()> {
        let journal = &self.journals[dice.below(self.journals.len() as u64) as usize];
        let known = self.transactions.len() as u64;
        let refused = match dice.below(if self.decisive { 4 } else { 10 }) {
            0 if known < 4 => {
                self.transactions.push(journal.transactions().begin()?);
                return Ok(());
            }
            1 | 2 if known > 0 => {
                let id = *dice.pick(&self.transactions);
                match dice.below(5) {
                    0 => journal.transactions().decide(id, false, &Session::default()),
                    1 => journal.transactions().decide(id, true, &Session::default()),
                    2 => journal.transactions().set_active_kinds(
                        id,
                        0,
                        dice.below(256) as u32,
                        &Session::default(),
                    ),
                    _ => journal.transactions().set_active_kinds(
                        id,
                        dice.below(256) as u32,
                        0,
                        &Session::default(),
                    ),
                }
            }
            _ => {
                let session = (known > 0 && dice.one_in(3)).then(|| *dice.pick(&self.transactions));
                journal.unflushed().add(side(dice, &self.heads), &Session::from(session))?;
                for _ in 0..dice.below(4) {
                    journal.committer().take(value(dice, &self.schema)?, &Session::from(session))?;
                }
                journal
                    .committer()
                    .flush(&Session::from(session))
                    .inspect_err(|_| journal.unflushed().discard(&Session::from(session)))
            }
        };
        match refused {
            Err(e) if !matches!(e.kind(), ErrorKind::Denied | ErrorKind::Conflict) => Err(e),
            _ => Ok(()),
        }
    }

    /// The store's schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The world of whoever reads it.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The logs, each with its last commit.
    pub fn heads(&self) -> &[(Id, u64)] {
        &self.heads
    }

    /// Transactions that were begun.
    pub fn transactions(&self) -> &[Id] {
        &self.transactions
    }

    /// The store as it is, and what stands there.
    pub fn now(&self) -> Result<(Feed, Standing)> {
        let feed = self.journals[0].looks().feed()?;
        Ok((feed.clone(), Standing(feed)))
    }

    /// The store with these commits of each log, and with what stands there.
    pub fn at(&self, heads: &[(Id, u64)]) -> Result<(Feed, Standing)> {
        let journal = &self.journals[0];
        let newest = journal.looks().snapshot()?;
        let heads = heads.iter().filter(|(_, sequence)| *sequence > 0).copied().collect();
        let snapshot = {
            let refresher = journal.looks().refresher().lock();
            newest.at(&Version::new(heads), &refresher)?
        };
        let feed = Feed::new(Arc::new(snapshot), journal.medium().clone());
        Ok((feed.clone(), Standing(feed)))
    }
}

/// Makes the folders of a store that all users may write to.
fn make_shared_folders(world: &SimWorld) -> Result<()> {
    world.set_uid("admin", 0);
    let admin = world.process("admin");
    for folder in ["", "logs", "data", "boards"] {
        let path = Path::new(ROOT).join(folder);
        let failed = |e| Error::io("make", &path, e);
        admin.disk.create_dir_all(&path).map_err(failed)?;
        world.permissions().set_mode(&path, 0o1777).map_err(failed)?;
    }
    Ok(())
}

/// A field or a removal under one of a few keys.
fn value(dice: &mut Random, schema: &Schema) -> Result<Encoded<'static>> {
    let mut value = field(dice, schema)?;
    if dice.one_in(4) {
        (value.entry.location, value.entry.array) = (Location::Removed { only: None }, None);
        value.entry.length = 0;
    }
    Ok(value)
}

/// A field under one of a few keys.
fn field(dice: &mut Random, schema: &Schema) -> Result<Encoded<'static>> {
    let key = schema.resolve(&[
        ("run", *dice.pick(&["a", "b"])),
        ("variable", *dice.pick(&["t", "u"])),
        ("step", *dice.pick(&["0", "1", "2"])),
        ("level", *dice.pick(&["1", "2"])),
    ])?;
    let array = (!dice.one_in(3)).then(|| {
        let dtype = *dice.pick(&[DType::F8, DType::F4]);
        let shape = vec![1 + dice.below(2)];
        let fill = Some(dtype.default_fill());
        Box::new(ArrayInfo { dtype, shape, piece: None, chunk: None, fill, summary: None })
    });
    let length = array.as_ref().map_or(0, |array| array.shape[0] * array.dtype.size() as u64);
    Ok(Encoded {
        key: encode_key(&key),
        entry: Entry {
            commit: 0,
            ordinal: 0,
            generation: true,
            length,
            array,
            location: Location::None,
            holder: None,
        },
        size: 0,
        blocks: Vec::new(),
        payload: Payload::default(),
        table: Vec::new(),
        digest: None,
        origin: None,
    })
}

/// The position of an entry among all entries of its key: by its commit or decision, its own stamp, its log, its
/// commit.
type EntryOrder = (Order, u64, Id, u64);

/// The fields that stand at the moment of a feed: the newest visible entry of each key, if it is a field.
#[derive(Debug)]
pub struct Standing(Feed);

impl Standing {
    fn newest(&self, own: Option<Id>) -> Result<BTreeMap<Vec<u8>, EntryChange>> {
        let states: BTreeMap<Id, TransactionState> =
            self.0.decisions().into_iter().map(|state| (state.transaction, state)).collect();
        let order = |writer: Id, entry: &EntryChange| -> Option<Order> {
            let Some(id) = entry.transaction else { return entry.order.or(Some((entry.stamp, writer))) };
            let prepared = (own == Some(id)).then_some((u64::MAX, Id::LEAST));
            let Some(state) = states.get(&id) else { return prepared };
            let open = state.is_open_for(writer, entry.sequence);
            state.visible(kinds::FIELDS, writer, entry.sequence).or(prepared.filter(|_| open))
        };
        let mut newest: BTreeMap<Vec<u8>, (EntryOrder, EntryChange)> = BTreeMap::new();
        for (writer, _) in self.0.logs() {
            for entry in self.0.entries(writer, 0) {
                let entry = entry?;
                let Some(order) = order(writer, &entry) else { continue };
                let place = (order, entry.stamp, writer, entry.sequence);
                let known = newest.entry(encode_key(&entry.key).bytes);
                let known = known.or_insert_with(|| (place, entry.clone()));
                if place >= known.0 {
                    *known = (place, entry);
                }
            }
        }
        Ok(newest.into_iter().map(|(key, (_, entry))| (key, entry)).collect())
    }
}

impl FieldLookup for Standing {
    fn fields(
        &self,
        request: &Request,
        transaction: Option<Id>,
        field: &mut dyn FnMut(&HeldField) -> Result<bool>,
    ) -> Result<()> {
        for entry in
            self.newest(transaction)?.into_values().filter(|entry| entry.effect == EntryEffect::Field)
        {
            let array = entry.dtype.zip(entry.shape);
            if asked(request, &entry.key) && !field(&HeldField { key: entry.key, array })? {
                break;
            }
        }
        Ok(())
    }
}

/// Whether a request, which lists values as they are written, selects a key.
fn asked(request: &Request, key: &FieldKey) -> bool {
    request.iter().all(|(keyword, values)| {
        let text = key.get(keyword).map(|value| value.text().into_owned());
        match values {
            Values::Any => true,
            Values::Like(wanted) => text.is_some_and(|text| {
                wanted.iter().any(|one| match one {
                    Wanted::One(own) => *own == text,
                    Wanted::Glob(pattern) => Glob::new(pattern).matches(&text),
                })
            }),
            Values::Present => key.get(keyword).is_some(),
            Values::Absent => key.get(keyword).is_none(),
            Values::List(items) => {
                items.iter().any(|item| matches!(item, Item::One(one) if Some(one) == text.as_ref()))
            }
        }
    })
}
