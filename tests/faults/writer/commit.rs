//! Commits as Iceberg's Java client makes them: one snapshot id through all attempts, and files deleted exactly where that
//! client deletes them.

use std::time::Duration;

use super::draft::{Change, Draft, Prepared};
use super::files::local;
use super::identity::Keys;
use super::table::Table;
use crate::catalog::{Answer, Catalog, Told};
use crate::random::Random;

/// How often a conflict is tried again.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    pub retries: u32,
    pub min_wait_ms: u64,
    pub max_wait_ms: u64,
}

impl Retry {
    pub const NONE: Self = Self { retries: 0, min_wait_ms: 0, max_wait_ms: 0 };
    /// Iceberg's defaults.
    pub const STOCK: Self = Self { retries: 4, min_wait_ms: 100, max_wait_ms: 60_000 };

    pub fn times(retries: u32) -> Self {
        Self { retries, min_wait_ms: 20, max_wait_ms: 500 }
    }
}

/// How a commit ended for its writer.
#[derive(Debug, Clone)]
pub enum Ended {
    Landed {
        attempts: u32,
        answer: Answer,
    },
    /// 409 to the last attempt; what was written is deleted.
    Conflicted {
        attempts: u32,
        answer: Answer,
    },
    /// Another refusal.
    Refused(Answer),
    /// It may have landed; nothing is deleted.
    Unknown(String),
}

impl Ended {
    #[track_caller]
    pub fn landed(self) -> Answer {
        match self {
            Ended::Landed { answer, .. } => answer,
            other => panic!("it did not land: {other:?}"),
        }
    }

    pub fn has_landed(&self) -> bool {
        matches!(self, Ended::Landed { .. })
    }

    pub fn attempts(&self) -> u32 {
        match self {
            Ended::Landed { attempts, .. } | Ended::Conflicted { attempts, .. } => *attempts,
            Ended::Refused(_) | Ended::Unknown(_) => 1,
        }
    }
}

/// How often the HTTP layer sends a request again that was turned away.
const SENT_AGAIN: u32 = 5;
const TURNED_AWAY_FOR: Duration = Duration::from_millis(200);

/// A writer of one branch of one table.
#[derive(Debug, Clone)]
pub struct Writer {
    pub catalog: Catalog,
    /// The path of the table below the warehouse.
    pub table: String,
    pub branch: String,
    pub retry: Retry,
    random: Random,
}

impl Writer {
    pub fn of(catalog: &Catalog, table: &str, seed: u64) -> Self {
        Self {
            catalog: catalog.clone(),
            table: table.to_owned(),
            branch: "main".to_owned(),
            retry: Retry::STOCK,
            random: Random::from_seed(seed),
        }
    }

    pub fn on_branch(self, branch: &str) -> Self {
        Self { branch: branch.to_owned(), ..self }
    }

    pub fn retrying(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    pub async fn load(&self) -> Table {
        Table::of(self.catalog.load(&self.table).await, &self.branch)
    }

    /// A change under a new snapshot id, with the writer's keys.
    pub fn draft(&mut self, table: &Table, change: Change, keys: Keys) -> Draft {
        Draft::new(table, change, self.random.snapshot_id(), keys)
    }

    pub async fn send(&self, prepared: &Prepared) -> Told {
        self.catalog.post(&self.table, &prepared.body).await
    }

    /// Makes the change, and sees it through as the stock client does.
    pub async fn commit(&mut self, change: Change, keys: Keys) -> Ended {
        let table = self.load().await;
        let draft = self.draft(&table, change, keys);
        self.see_through(&draft, table).await
    }

    /// The attempts of a draft, the first of them on `table`.
    pub async fn see_through(&mut self, draft: &Draft, table: Table) -> Ended {
        let (mut table, mut tried) = (table, Vec::new());
        loop {
            let prepared = draft.on(&table);
            let told = self.send_until_taken(&prepared).await;
            tried.push(prepared);
            let attempts = tried.len() as u32;
            match told {
                Ok(answer) if answer.status == 200 => {
                    self.clean_up_after_success(&tried).await;
                    return Ended::Landed { attempts, answer };
                }
                Ok(answer) if answer.status == 409 && attempts <= self.retry.retries => {}
                Ok(answer) if answer.status == 409 => {
                    delete_all(&tried);
                    return Ended::Conflicted { attempts, answer };
                }
                Ok(answer) if matches!(answer.status, 400 | 401 | 403 | 404) => {
                    delete_all(&tried);
                    return Ended::Refused(answer);
                }
                Ok(answer) if answer.status < 500 => return Ended::Refused(answer),
                Ok(answer) => return Ended::Unknown(answer.text),
                Err(lost) => return Ended::Unknown(lost.to_string()),
            }
            self.wait_before(attempts).await;
            table = self.load().await;
            // The client meets itself in what it reloads where its commit landed after all.
            if table.has(draft.snapshot_id) {
                let answer = Answer { status: 200, duplicate_of: None, retry_after: false, text: String::new() };
                return Ended::Landed { attempts, answer };
            }
        }
    }

    /// The HTTP layer's own patience with 429 and with 503 that says when to come again.
    async fn send_until_taken(&self, prepared: &Prepared) -> Told {
        let mut told = self.send(prepared).await;
        for _ in 0..SENT_AGAIN {
            let again = told.as_ref().is_ok_and(|answer| matches!(answer.status, 429 | 503) && answer.retry_after);
            if !again {
                break;
            }
            tokio::time::sleep(TURNED_AWAY_FOR).await;
            told = self.send(prepared).await;
        }
        told
    }

    async fn wait_before(&mut self, retry: u32) {
        let wait_ms = (self.retry.min_wait_ms << (retry - 1).min(20)).min(self.retry.max_wait_ms);
        let jitter = self.random.below(wait_ms / 10 + 1);
        tokio::time::sleep(Duration::from_millis(wait_ms + jitter)).await;
    }

    /// Looks itself up by its id, and deletes the manifest lists of its own that are not the snapshot's.
    async fn clean_up_after_success(&self, tried: &[Prepared]) {
        let Ok(answer) = self.catalog.get(&self.table).await else { return };
        if answer.status != 200 {
            return;
        }
        let table = Table::of(answer.json()["metadata"].take(), &self.branch);
        let landed = tried.iter().find(|prepared| table.has(prepared.snapshot_id));
        let Some(landed) = landed.map(|prepared| table.snapshot(prepared.snapshot_id)) else { return };
        for list in tried.iter().map(|prepared| &prepared.list).filter(|list| landed["manifest-list"] != **list) {
            delete(list);
        }
    }
}

fn delete_all(tried: &[Prepared]) {
    for prepared in tried {
        delete(&prepared.list);
        prepared.manifests.iter().for_each(|manifest| delete(manifest));
    }
}

/// As clients do: what is gone already is no fault.
fn delete(location: &str) {
    let _ = std::fs::remove_file(local(location));
}
