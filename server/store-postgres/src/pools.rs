//! How the pools are used.

use catalog::store::{PoolUse, Pools};
use sqlx::{Database, Pool};

use crate::PostgresStore;

impl Pools for PostgresStore {
    fn pools(&self) -> Vec<PoolUse> {
        let replica = self.replica.as_deref().map(|replica| used("replica", &replica.pool));
        [used("main", &self.pool.now())].into_iter().chain(replica).collect()
    }
}

fn used<D: Database>(name: &'static str, pool: &Pool<D>) -> PoolUse {
    let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX);
    PoolUse { name, in_use: pool.size().saturating_sub(idle), idle, max: pool.options().get_max_connections() }
}
