//! The methods by number, once for both ends: [`client_methods`] turns a list into the client's calls, [`server_arms`]
//! into the server's. `try` methods fail as in a local store; `plain` methods, which cannot fail there, return their
//! type's default if the connection is lost.
//!
//! Methods with separate code, because their answers stay with the store or their arguments borrow in several places,
//! have their numbers in [`alone`].

macro_rules! fields {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0100 try extend_schema(text: &str, session: &Session) -> Schema;
            0x0101 try remove(request: &Request, options: &RemoveOptions) -> u64;
            0x0102 try axes(request: &Request, options: &ReadOptions) -> Vec<(Arc<str>, Vec<KeyValue>)>;
            0x0103 try version() -> String;
            0x0104 try refresh() -> ();
            0x0105 try owner(level: &[u8]) -> Option<u32>;
            0x0106 try claim(level: Vec<u8>, session: &Session) -> ();
            0x0107 try bounds() -> Vec<Request>;
        }
    };
}

macro_rules! transactions {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0200 try flush(session: &Session) -> ();
            0x0201 try discard(session: &Session) -> ();
            0x0202 try check_lost(session: &Session) -> ();
            0x0203 plain unflushed() -> u64;
            0x0204 try begin() -> Id;
            0x0205 try decide(transaction: Id, commit: bool, session: &Session) -> ();
            0x0206 try abandon(transaction: Id, session: &Session) -> ();
            0x0207 try set_active_kinds(transaction: Id, on: u32, off: u32, session: &Session) -> ();
        }
    };
}

macro_rules! admin {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0300 try stats(request: &Request) -> Stats;
            0x0301 try status() -> Status;
            0x0302 try skipped() -> Vec<String>;
            0x0303 try verify(request: &Request) -> VerifyReport;
            0x0304 try dump(request: &Request) -> Vec<String>;
            0x0305 try checkpoint(folder: &Path, options: &CheckpointOptions, session: &Session) -> CheckpointReport;
            0x0306 try stats_by(request: &Request, by: &StatsBy) -> Vec<StatsRow>;
        }
    };
}

macro_rules! backend {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0400 plain folder() -> Option<PathBuf>;
            0x0401 plain native_folder() -> Option<PathBuf>;
            0x0402 try check_writable() -> ();
            0x0403 try check_format(since: u32, what: &str) -> ();
            0x0404 try create() -> ();
            0x0405 plain has_pending(session: &Session) -> bool;
            0x0406 try is_decided(transaction: Id) -> bool;
            0x0407 try origins(request: &Request, session: &Session) -> Vec<(CommitId, u64)>;
            0x0408 try wait(since: &str, timeout: u64, session: &Session) -> bool;
            0x0409 plain take_undated() -> Option<Arc<str>>;
            0x040a try close_quietly(session: &Session) -> ();
        }
    };
}

macro_rules! backend_admin {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0500 try set_if_exists(if_exists: IfExists, session: &Session) -> ();
            0x0501 try accept(name: &str, why: &str, session: &Session) -> AcceptanceReport;
            0x0502 try upgrade(session: &Session) -> (u32, u32);
            0x0503 try pin_format(version: u32, session: &Session) -> ();
            0x0504 try wipe(request: &Request, how: &Wiping) -> WipeReport;
            0x0505 try set_lock(request: &Request, how: &Locking) -> u64;
            0x0506 try locks() -> Vec<DatasetLock>;
            0x0507 try set_hidden(request: &Request, how: &Hiding) -> u64;
            0x050b try hidden() -> Vec<HiddenFields>;
            0x0508 try retain(request: &Request, how: &Retaining) -> RetentionRule;
            0x0509 try rules() -> Vec<RetentionRule>;
            0x0528 try moving_rules(session: &Session) -> Vec<RetentionRule>;
            0x0563 try verify_since(request: &Request, since: &str) -> VerifyReport;
            0x0560 try hold(how: &Holding) -> HoldInfo;
            0x0561 try release(name: &str, session: &Session) -> ();
            0x0562 try holds() -> Vec<HoldInfo>;
        }
    };
}

macro_rules! backend_owners {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0586 try hand_over(how: &HandingOver) -> HandOverReport;
            0x0587 try hand_overs() -> Vec<HandOverInfo>;
        }
    };
}

macro_rules! backend_sharing {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0580 try set_overlay(request: &Request, how: &Overlaying) -> u64;
            0x0581 try overlays() -> Vec<OverlaidFields>;
            0x0582 try indexed(request: &Request, after: &[u8], session: &Session) -> Vec<IndexedField>;
            0x0583 try take_indexed(fields: &[IndexedField], session: &Session) -> Vec<(String, String)>;
            0x0584 try point(request: &Request, how: &Pointing) -> bool;
            0x0585 try pointers() -> Vec<PointedFields>;
        }
    };
}

macro_rules! backend_lane {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0544 try newest_place(key: &[u8]) -> Option<u64>;
            0x0540 try transactions() -> Vec<TransactionState>;
            0x0541 try settings() -> StoreSettings;
            0x0542 try named_files() -> Vec<(String, u64)>;
        }
    };
}

macro_rules! catalog_writer {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0600 try create_run(run: RunDecl, exist_ok: bool, session: &Session) -> ();
            0x0601 try move_outside(moved: Vec<(RunName, Value)>, session: &Session) -> ();
            0x0602 try set_state(run: &RunName, state: RunState, session: &Session) -> ();
            0x0603 try create_variables(run: &RunName, variables: Vec<VariableDecl>, session: &Session) -> ();
            0x0604 try create_versions(run: &RunName, variables: Vec<VariableDecl>, session: &Session) -> ();
            0x0605 try create_steps(run: &RunName, steps: Vec<StepDecl>, session: &Session) -> ();
            0x0606 try create_tags(tags: Vec<TagDecl>, session: &Session) -> Vec<TagInfo>;
            0x0607 try tag_for(name: &str, version: Option<i64>, kind: ValueType, session: &Session) -> TagDecl;
            0x0608 try tag_in_unit(name: &str, version: Option<i64>, kind: ValueType, unit: &str, session: &Session) -> TagDecl;
            0x0609 try annotate(batch: AttributeBatch, session: &Session) -> ();
            0x060a try annotate_all(batches: Vec<AttributeBatch>, session: &Session) -> ();
            0x060b try carry(batch: AttributeBatch, session: &Session) -> ();
            0x060c try remove_attributes(run: &RunName, attributes: &[(AttributeId, u32)], session: &Session) -> ();
            0x060d try remove_declarations(run: &RunName, rows: &[DeclarationRow], session: &Session) -> ();
            0x060e try declare_again(run: &RunName, records: Vec<Record>, session: &Session) -> ();
            0x060f try delete(what: &CatalogDeletion, fields: bool, doit: bool, session: &Session) -> DeleteReport;
        }
    };
}

macro_rules! catalog_lookup {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0640 try run(project: Option<&str>, name: &str, session: &Session) -> RunInfo;
            0x0641 try if_exists_of(run: &RunName, session: &Session) -> Option<IfExists>;
            0x0642 try variable(run: &RunName, name: &str, version: Option<i64>, session: &Session) -> VariableInfo;
            0x0643 try declared_variable(run: &RunName, variable: &VariableName, session: &Session) -> VariableInfo;
            0x0644 try variable_to_write(run: &RunName, name: &str, session: &Session) -> Option<Arc<VariableInfo>>;
            0x0645 try declarations(run: &RunName, session: &Session) -> Vec<DeclarationRow>;
            0x0646 plain user(session: &Session) -> u32;
            0x0647 plain user_name(user: u32) -> String;
            0x0648 try writer(log: Option<Id>) -> Option<Writer>;
            0x0649 try key_of(run: &RunName, variable: Option<&str>, step: Option<i64>) -> Vec<(String, String)>;
            0x064a try has_declarations() -> bool;
            0x064b try has_records() -> bool;
        }
    };
}

macro_rules! catalog_queries {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0680 try attributes(query: &Query) -> HitTable;
            0x0681 try pairs(query: &Query) -> PairTable;
            0x0682 try value_kind(query: &Query) -> Option<ValueType>;
            0x0683 try count(query: &Query) -> u64;
            0x0684 try aggregate(query: &Query, by: &[By]) -> Vec<Aggregate>;
            0x0685 try boxes(query: &Query) -> Vec<BoxInfo>;
            0x0686 try runs(query: &Query) -> Vec<RunInfo>;
            0x0687 try runs_to_change(query: &Query) -> Vec<RunInfo>;
            0x0688 try steps(query: &Query) -> Vec<StepInfo>;
            0x0689 try variables(query: &Query) -> Vec<VariableInfo>;
            0x068a try tags(query: &Query) -> Vec<TagInfo>;
            0x068b try missing_name(query: &Query) -> Option<MissingName>;
            0x068c try explain(query: &Query) -> String;
            0x068d try sql_until(statement: &str, stop: Option<&Interrupt>) -> Selection;
        }
    };
}

macro_rules! catalog_arrays {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x06c0 try create_groups(run: &RunName, groups: Vec<ArrayGroup>, session: &Session) -> ();
            0x06c1 try create_imports(run: &RunName, imports: Vec<ImportDecl>, session: &Session) -> ();
            0x06c2 try create_meshes(meshes: Vec<MeshDecl>, session: &Session) -> ();
            0x06c3 try create_histories(histories: Vec<HistoryDecl>, session: &Session) -> ();
            0x06c4 try array_groups(run: &RunName, session: &Session) -> Vec<ArrayGroup>;
            0x06c5 try array_group(run: &RunName, name: &str, session: &Session) -> ArrayGroup;
            0x06c6 try imports(run: &RunName, session: &Session) -> Vec<ImportDecl>;
            0x06c7 try meshes(session: &Session) -> Vec<MeshDecl>;
            0x06c8 try mesh(name: &str, session: &Session) -> MeshDecl;
            0x06c9 try histories(session: &Session) -> Vec<HistoryDecl>;
            0x06ca try array_table(name: &str) -> (Vec<String>, Vec<Vec<Value>>);
        }
    };
}

macro_rules! catalog_admin {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x06e0 try rebuild() -> RebuildReport;
            0x06e1 try verify() -> CatalogCheck;
            0x06e2 try conflicts() -> Vec<String>;
            0x06e3 try catch_up() -> bool;
            0x06e4 plain overlaid() -> u64;
            0x06e5 plain join_applying() -> ();
            0x06e6 plain copy_overlays_at(rows: u64) -> ();
        }
    };
}

macro_rules! graph_writer {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0700 try define(types: Vec<TypeDecl>, session: &Session) -> ();
            0x0701 try put_vertices(vertices: Vec<VertexPut>, session: &Session) -> u64;
            0x0702 try put_relations(relations: Vec<RelationPut>, session: &Session) -> u64;
            0x0703 try put(vertices: Vec<VertexPut>, relations: Vec<RelationPut>, session: &Session) -> u64;
            0x0704 try put_batch(vertices: Vec<VertexPut>, batch: &RelationBatch, session: &Session) -> u64;
            0x0705 try delete(what: Vec<Deletion>, time: Option<u64>, session: &Session) -> u64;
            0x0706 try take_versions(versions: &HiddenVersions, session: &Session) -> ();
            0x0707 try put_stubs(archive: &Archive, versions: &HiddenVersions, session: &Session) -> ();
        }
    };
}

macro_rules! graph_reader {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0740 try vertex(vertex: &VertexName, at: Option<u64>, session: &Session) -> Vertex;
            0x0741 try versions(vertex: &VertexName, session: &Session) -> Vec<Vertex>;
            0x0742 try edges(vertex: &VertexName, kind: Option<&str>, versions: Versions, limit: Option<usize>, session: &Session) -> Vec<Relation>;
            0x0743 try find(test: &VertexTest, at: Option<u64>, limit: Option<usize>, session: &Session) -> Vec<Vertex>;
            0x0744 try find_relations(test: &RelationTest, at: Option<u64>, limit: Option<usize>, session: &Session) -> Vec<Relation>;
            0x0745 try find_by_type(kind: &str, tests: &[(String, Test)], at: Option<u64>, limit: Option<usize>, session: &Session) -> TypeMatches;
            0x0746 try search(text: &str, kind: Option<&str>, limit: Option<usize>, session: &Session) -> Vec<Vertex>;
            0x0747 plain user_name(user: u32) -> String;
            0x0748 plain user_number(name: &str) -> Option<u32>;
            0x0749 plain now() -> u64;
        }
    };
}

macro_rules! graph_walks {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x0780 try trace(root: &VertexName, options: &TraceOptions, session: &Session) -> Lineage;
            0x0781 try trace_all(root: &VertexName, others: &[VertexName], options: &TraceOptions, session: &Session) -> Lineage;
            0x0782 try trace_on(starts: &[Step], options: &TraceOptions, session: &Session) -> Option<Lineage>;
            0x0783 try dossier(root: &VertexName, options: &TraceOptions, session: &Session) -> Dossier;
            0x0784 try dossier_all(root: &VertexName, others: &[VertexName], options: &TraceOptions, session: &Session) -> Dossier;
            0x0785 try around(lineage: &Lineage, at: Option<u64>, session: &Session) -> Dossier;
            0x0786 try audit(options: &AuditOptions, session: &Session) -> Audit;
        }
    };
}

macro_rules! graph_admin {
    ($with:ident!($($context:tt)*)) => {
        $with! { ($($context)*)
            0x07c0 try partition(partitioning: Partitioning) -> Partitions;
            0x07c1 try partitions() -> Partitions;
            0x07c2 try rebuild() -> Stats;
            0x07c3 try verify() -> Check;
            0x07c4 try stats() -> Stats;
        }
    };
}

/// Methods with separate code.
pub mod alone {
    macro_rules! numbers {
        ($($name:ident = $number:literal;)*) => {
            $(pub const $name: u16 = $number;)*
        };
    }

    numbers! {
        URL = 0x0180;
        SCHEMA = 0x0181;
        ARCHIVE = 0x0182;
        ARCHIVE_MANY = 0x0183;
        CREATE_FIELD = 0x0184;
        ARCHIVE_EXTERNAL = 0x0185;
        ARCHIVE_STORED = 0x0186;
        REMOVE_FIELDS = 0x0187;
        LIST = 0x0188;
        RETRIEVE = 0x0189;
        GET = 0x018a;
        WILL_WRITE = 0x0280;
        CLOSE = 0x0380;
        ID = 0x0480;
        LIST_SINCE = 0x0481;
        LIST_COMMITS = 0x0482;
        CATALOG = 0x0483;
        GRAPH = 0x0484;
        GRAPH_IN = 0x0485;
        MAINTAIN = 0x050a;
        COMPACT = 0x0530;
        PURGE = 0x0531;
        ERASE = 0x0510;
        ENTRIES = 0x0570;
        ACTIVATE = 0x0630;
        STREAM = 0x06b0;
        HIDDEN = 0x0770;
        TRAVEL = 0x07b0;
        // Methods of objects: fields, sets of fields, streams, traversals.
        FIELD_MISSING = 0x0800;
        FIELD_HOLES = 0x0801;
        FIELD_OUTLINE = 0x0802;
        FIELD_COMPRESSED = 0x0803;
        FIELD_STORED = 0x0804;
        FIELD_BLOCK = 0x0805;
        FIELD_READ_BLOCK = 0x0806;
        FIELD_READ = 0x0807;
        FIELD_READ_RANGE = 0x0808;
        FIELD_PARTS = 0x0809;
        FIELD_OLDER = 0x080a;
        FIELD_HAS_OLDER = 0x080b;
        FIELD_WARM = 0x080c;
        FIELDS_GET = 0x0810;
        FIELDS_MISSING = 0x0811;
        NEXT = 0x0820;
        TRAVEL_NAMES = 0x0830;
        TRAVEL_VERTEX = 0x0831;
        TRAVEL_PATHS = 0x0832;
    }
}

/// Generates the bodies of a client's methods.
macro_rules! client_methods {
    (($($context:tt)*) $($number:literal $kind:ident $name:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        $($crate::remote::methods::client_method! { $kind $number $name($($arg: $of),*) -> $answer })*
    };
}

macro_rules! client_method {
    (try $number:literal $name:ident($($arg:ident: $of:ty),*) -> $answer:ty) => {
        fn $name(&self $(, $arg: $of)*) -> Result<$answer> {
            self.far.call($number, |_out| {
                $(<$of as Argument<'_>>::send(&$arg, _out);)*
            })
        }
    };
    (plain $number:literal $name:ident($($arg:ident: $of:ty),*) -> $answer:ty) => {
        fn $name(&self $(, $arg: $of)*) -> $answer {
            self.far.call_or_default($number, |_out| {
                $(<$of as Argument<'_>>::send(&$arg, _out);)*
            })
        }
    };
}

/// Serves a method if its number is in the list: returns its answer's bytes from the enclosing function.
macro_rules! server_arms {
    (($target:expr, $method:expr, $input:expr) $($number:literal $kind:ident $name:ident($($arg:ident: $of:ty),*) -> $answer:ty;)*) => {
        match $method {
            $($number => {
                $(let $arg = <<$of as Argument<'_>>::Owned as Wire>::read($input)?;)*
                $input.end()?;
                let answer = $crate::remote::methods::outcome!($kind $target.$name($(<$of as Argument<'_>>::lend(&$arg)),*));
                return Ok(encoded(&answer));
            })*
            _ => {}
        }
    };
}

macro_rules! outcome {
    (try $call:expr) => {
        $call?
    };
    (plain $call:expr) => {
        $call
    };
}

pub(crate) use {
    admin, backend, backend_admin, backend_lane, backend_owners, backend_sharing, catalog_admin,
    catalog_arrays, catalog_lookup, catalog_queries, catalog_writer, client_method, client_methods, fields,
    graph_admin, graph_reader, graph_walks, graph_writer, outcome, server_arms, transactions,
};
