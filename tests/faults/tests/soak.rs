//! Chaos: writers, readers and compaction go on while servers and databases are killed, and a model tells afterwards
//! whether every answer was true. `FAULTS_SEED` plans it, `FAULTS_SECONDS` says for how long.

use std::sync::Arc;
use std::time::Duration;

use faults::catalog::Told;
use faults::cluster::Cluster;
use faults::database::{rows, through};
use faults::frazil::{Frazil, Launch};
use faults::proxy::Proxy;
use faults::proxy::postgres::{Fault, Place};
use faults::random::Random;
use faults::writer::files::Content;
use faults::writer::identity::{flink, kafka_connect, spark_batch};
use faults::writer::{Change, DataFile, Draft, Table};
use serde_json::json;
use sqlx::Row;
use tokio::time::{Instant, sleep};

use crate::connection::SWAP;
use crate::probe::{Probe, TABLE, data, equality_deletes};

use world::{World, pause};

mod world;

/// A CI run; the long one says more.
const SECONDS: u64 = 60;
const JOBS: u64 = 5;
const UPSERTS: u64 = 3;
/// What one checkpoint may take before it counts as lost.
const TRIES: u32 = 2_000;
/// Snapshots that a table keeps, where old ones are removed.
const KEPT: usize = 200;

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn seed() -> u64 {
    let seed = number_of("FAULTS_SEED", 20_261_130);
    println!("FAULTS_SEED={seed}");
    seed
}

/// A writer that has state, as a job with checkpoints has.
struct Stream {
    world: Arc<World>,
    random: Random,
    name: String,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Append,
    Merging,
    Upsert,
    KafkaConnect,
}

impl Stream {
    fn keys(&self, checkpoint: i64) -> Vec<(String, String)> {
        match self.kind {
            Kind::KafkaConnect => {
                kafka_connect(&self.name, &format!("{{\"0\":{checkpoint}}}"), &checkpoint.to_string())
            }
            _ => flink(&self.name, "operator", checkpoint),
        }
    }

    async fn run(mut self) {
        let mut checkpoint = 0;
        while !self.world.is_over() {
            checkpoint += 1;
            self.commit(checkpoint).await;
            pause(&mut self.random, 40).await;
        }
    }

    /// Sees a checkpoint through, by as many processes as it takes.
    async fn commit(&mut self, checkpoint: i64) {
        let table = self.world.load(&mut self.random).await;
        let key = match self.kind {
            Kind::Upsert => self.name.clone(),
            _ => format!("{}-{checkpoint}", self.name),
        };
        let change = self.change(&table, &key);
        let mut tries = 0;
        while !self.process(&change, checkpoint, &key, &mut tries).await {}
    }

    fn change(&self, table: &Table, key: &str) -> Change {
        let files = vec![data(table, &[key])];
        match self.kind {
            Kind::Append | Kind::KafkaConnect => Change::FastAppend(files),
            Kind::Merging => Change::MergingAppend { files, min_count: 10 },
            Kind::Upsert => Change::RowDelta { data: files, deletes: vec![equality_deletes(table, &[key])] },
        }
    }

    /// One process: one snapshot id through all its attempts. Tells whether it brought the checkpoint to its end; where
    /// not, it has died without knowing.
    async fn process(&mut self, change: &Change, checkpoint: i64, key: &str, tries: &mut u32) -> bool {
        let mut table = self.world.load(&mut self.random).await;
        let draft = Draft::new(&table, change.clone(), self.random.snapshot_id(), self.keys(checkpoint));
        let mut prepared = draft.on(&table);
        loop {
            *tries += 1;
            assert!(*tries < TRIES, "checkpoint {checkpoint} of {} does not get through", self.name);
            match judge(self.world.post(&mut self.random, &prepared.body).await) {
                Judged::Landed { as_duplicate } => {
                    self.landed(draft.snapshot_id, key, as_duplicate);
                    return true;
                }
                Judged::Conflict => {
                    pause(&mut self.random, 50).await;
                    table = self.world.load(&mut self.random).await;
                    if table.has(draft.snapshot_id) {
                        self.landed(draft.snapshot_id, key, false);
                        return true;
                    }
                    prepared = draft.on(&table);
                }
                Judged::Again => pause(&mut self.random, 100).await,
                Judged::Unknown => {
                    self.world.model.unknown(draft.snapshot_id, &[]);
                    if self.random.below(2) == 0 {
                        return false;
                    }
                }
            }
        }
    }

    fn landed(&self, snapshot_id: i64, key: &str, as_duplicate: bool) {
        match (self.kind, as_duplicate) {
            (Kind::Upsert, false) => self.world.model.upserted(snapshot_id, key),
            (_, false) => self.world.model.landed(snapshot_id, &[key]),
            (_, true) => {}
        }
    }
}

/// What a client makes of an answer.
enum Judged {
    Landed {
        as_duplicate: bool,
    },
    Conflict,
    /// Nothing was applied: the same request may go again.
    Again,
    Unknown,
}

fn judge(told: Told) -> Judged {
    match told {
        Ok(answer) => match answer.status {
            200 => Judged::Landed { as_duplicate: answer.duplicate_of.is_some() },
            409 => Judged::Conflict,
            429 | 503 => Judged::Again,
            500 if answer.is_unknown() => Judged::Unknown,
            _ => panic!("no answer to a commit: {answer:?}"),
        },
        Err(lost) if lost.is_connect() => Judged::Again,
        Err(_) => Judged::Unknown,
    }
}

/// A batch job that gives up at its third conflict, and then says that its row must not be there.
async fn batches(world: Arc<World>, mut random: Random) {
    for number in 0.. {
        if world.is_over() {
            return;
        }
        let key = format!("batch-{number}");
        let mut table = world.load(&mut random).await;
        let draft =
            Draft::new(&table, Change::FastAppend(vec![data(&table, &[&key])]), random.snapshot_id(), spark_batch());
        let mut conflicts = 0;
        let mut in_doubt = false;
        loop {
            match judge(world.post(&mut random, &draft.on(&table).body).await) {
                Judged::Landed { .. } => break world.model.landed(draft.snapshot_id, &[&key]),
                Judged::Unknown => in_doubt = true,
                Judged::Again => pause(&mut random, 50).await,
                Judged::Conflict if conflicts < 2 => {
                    conflicts += 1;
                    table = world.load(&mut random).await;
                    if table.has(draft.snapshot_id) {
                        break world.model.landed(draft.snapshot_id, &[&key]);
                    }
                }
                Judged::Conflict if in_doubt => break world.model.unknown(draft.snapshot_id, &[&key]),
                Judged::Conflict => break world.model.refused(draft.snapshot_id, &[&key]),
            }
        }
        pause(&mut random, 200).await;
    }
}

/// Puts the oldest small files into one, again and again; it may fail, and nothing may change by it.
async fn compaction(world: Arc<World>, mut random: Random) {
    while !world.is_over() {
        let table = world.load(&mut random).await;
        if let Some(change) = compacted(&table) {
            let draft = Draft::new(&table, change, random.snapshot_id(), spark_batch());
            judge(world.post(&mut random, &draft.on(&table).body).await);
        }
        pause(&mut random, 300).await;
    }
}

/// The files of the fullest manifests in one file of the same age. Deletes must still reach their rows, so the age is
/// that of the snapshot that they were read in, and files with deleted rows are left alone.
fn compacted(table: &Table) -> Option<Change> {
    let live = table.live_files();
    let plain =
        |file: &DataFile| file.content == Content::Data && !file.keys().iter().any(|key| key.starts_with("hot"));
    let chosen: Vec<&DataFile> = live.iter().map(|live| &live.file).filter(|file| plain(file)).take(8).collect();
    let keys: Vec<&str> = chosen.iter().flat_map(|file| file.keys()).collect();
    let removed = chosen.iter().map(|file| file.path.clone()).collect();
    (chosen.len() > 1 && keys.len() < 400).then(|| Change::Rewrite {
        removed,
        added: vec![data(table, &keys)],
        sequence_number: Some(table.last_sequence_number()),
    })
}

/// Removes old snapshots, as retention does.
async fn retention(world: Arc<World>, mut random: Random) {
    while !world.is_over() {
        let table = world.load(&mut random).await;
        let chain = table.chain();
        if chain.len() > KEPT + 50 {
            let old = &chain[..chain.len() - KEPT];
            let update = json!({"action": "remove-snapshots", "snapshot-ids": old});
            let body = json!({"requirements": [], "updates": [update]});
            // If it does not come through, the next one does.
            let _ = world.post(&mut random, &body).await;
        }
        pause(&mut random, 2_000).await;
    }
}

async fn readers(world: Arc<World>, mut random: Random) {
    while !world.is_over() {
        let table = world.load(&mut random).await;
        table.manifests();
        pause(&mut random, 30).await;
    }
}

/// Everybody at work until the time is over, beside the chaos.
async fn run(world: &Arc<World>, random: &mut Random, chaos: impl Future<Output = ()>) {
    let kinds = [Kind::Append, Kind::Merging, Kind::KafkaConnect];
    let mut tasks = Vec::new();
    for number in 0..JOBS + UPSERTS {
        let (kind, name) = match number {
            number if number < JOBS => (kinds[number as usize % kinds.len()], format!("job-{number}")),
            number => (Kind::Upsert, format!("hot-{number}")),
        };
        let stream = Stream { world: world.clone(), random: random.fork(), name, kind };
        tasks.push(tokio::spawn(stream.run()));
    }
    tasks.push(tokio::spawn(batches(world.clone(), random.fork())));
    tasks.push(tokio::spawn(compaction(world.clone(), random.fork())));
    tasks.push(tokio::spawn(retention(world.clone(), random.fork())));
    tasks.push(tokio::spawn(readers(world.clone(), random.fork())));
    chaos.await;
    world.end();
    for task in tasks {
        task.await.unwrap();
    }
}

/// What the table itself tells.
async fn check(world: &World, random: &mut Random) {
    let table = world.load(random).await;
    table.assert_branch_is_whole();
    for snapshot in table.chain().iter().rev().step_by(20) {
        table.live_files_of(*snapshot);
    }
    world.model.check(&table);
    println!("{} commits were acknowledged, {} rows", world.model.acknowledged(), table.rows().len());
    assert!(world.model.acknowledged() > 20, "hardly anything was committed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_sqlite_that_is_killed_again_and_again_keeps_its_word() {
    let mut random = Random::from_seed(seed());
    let launch = Launch::default();
    let mut server = Frazil::start(&launch).await;
    Probe::with(&server.catalog(), &json!({"frazil.commit.rebase": "streaming"})).await;
    let world = World::of(vec![server.catalog()], TABLE);
    let mut plan = random.fork();
    let chaos = async {
        let end = Instant::now() + Duration::from_secs(number_of("FAULTS_SECONDS", SECONDS));
        while Instant::now() < end {
            pause(&mut plan, 3_000).await;
            match plan.below(3) {
                0 => server.kill(),
                1 => assert_eq!(server.terminate(), 0),
                _ => {
                    stall(&server).await;
                    continue;
                }
            }
            server.run(&launch).await;
        }
    };
    run(&world, &mut random, chaos).await;
    check(&world, &mut random).await;
}

async fn stall(server: &Frazil) {
    server.signal("STOP");
    sleep(Duration::from_millis(700)).await;
    server.signal("CONT");
}

/// Two replicas on one database, each behind a proxy.
struct Replicas {
    cluster: Cluster,
    proxies: Vec<Proxy<Fault>>,
    launches: Vec<Launch>,
    servers: Vec<Frazil>,
}

impl Replicas {
    async fn new() -> Self {
        let cluster = Cluster::start(&[]);
        let url = cluster.url("postgres");
        let data = tempfile::tempdir().unwrap().keep();
        let (mut proxies, mut launches, mut servers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..2 {
            let proxy = Proxy::postgres(&cluster.address()).await;
            let launch = Launch::on(&through(&url, &proxy.address()));
            let mut server = Frazil::idle(&data);
            server.run(&launch).await;
            proxies.push(proxy);
            launches.push(launch);
            servers.push(server);
        }
        Self { cluster, proxies, launches, servers }
    }

    /// One fault, and its end.
    async fn suffer(&mut self, plan: &mut Random) {
        let one = plan.below(2) as usize;
        match plan.below(6) {
            0 => {
                self.servers[one].kill();
                self.servers[one].run(&self.launches[one]).await;
            }
            1 => {
                assert_eq!(self.servers[one].terminate(), 0);
                self.servers[one].run(&self.launches[one]).await;
            }
            2 => {
                self.cluster.crash();
                self.cluster.run();
            }
            3 => {
                self.cluster.stop();
                self.cluster.run();
            }
            4 => stall(&self.servers[one]).await,
            _ => {
                let places = [
                    Place::BeforeStatement,
                    Place::AfterSync,
                    Place::BeforeCommandComplete,
                    Place::BeforeReadyForQuery,
                ];
                self.proxies[one].plan(Fault::at(SWAP, plan.one_of(&places).clone()));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_on_a_database_that_restarts_keep_their_word() {
    let mut random = Random::from_seed(seed());
    let mut replicas = Replicas::new().await;
    let catalogs: Vec<_> = replicas.servers.iter().map(Frazil::catalog).collect();
    Probe::with(&catalogs[0], &json!({"frazil.commit.rebase": "streaming"})).await;
    let world = World::of(catalogs, TABLE);
    let mut plan = random.fork();
    let chaos = async {
        let end = Instant::now() + Duration::from_secs(number_of("FAULTS_SECONDS", SECONDS));
        while Instant::now() < end {
            pause(&mut plan, 3_000).await;
            replicas.suffer(&mut plan).await;
        }
        replicas.proxies.iter().for_each(Proxy::behave);
    };
    run(&world, &mut random, chaos).await;
    check(&world, &mut random).await;
    check_database(&world, &replicas.cluster.url("postgres")).await;
    std::fs::remove_dir_all(&replicas.servers[0].data).unwrap();
}

/// What the database remembers, expired snapshots included.
async fn check_database(world: &World, url: &str) {
    let lineage = rows(url, "SELECT snapshot_id, parent_id FROM lineage ORDER BY sequence_number").await;
    let lineage: Vec<(i64, Option<i64>)> = lineage.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(lineage[0].1, None, "the first snapshot has a parent");
    for pair in lineage.windows(2) {
        assert_eq!(pair[1].1, Some(pair[0].0), "the lineage is broken before {}", pair[1].0);
    }
    let ids: Vec<i64> = lineage.iter().map(|(id, _)| *id).collect();
    for id in world.model.landed_ids() {
        assert!(ids.contains(&id), "{id} was acknowledged and is not in the lineage");
    }
    let outbox =
        "SELECT snapshot_id FROM outbox WHERE what = 'committed' AND snapshot_id IS NOT NULL ORDER BY xid, serial";
    let outbox: Vec<i64> = rows(url, outbox).await.iter().map(|row| row.get(0)).collect();
    assert_eq!(outbox, ids, "the outbox does not tell what was committed, in its order");
    let logged = "SELECT snapshot_id, count(*) FROM commit_log WHERE outcome IN ('committed', 'rebased')
                   AND snapshot_id IS NOT NULL GROUP BY snapshot_id";
    let logged = rows(url, logged).await;
    assert!(logged.iter().all(|row| row.get::<i64, _>(1) == 1), "the log has a commit twice");
    assert_eq!(logged.len(), ids.len(), "the log does not tell what was committed");
}
