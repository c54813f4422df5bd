//! W7: a catalog of many namespaces and tables: to make, to list, to page through and to load from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use faults::random::Random;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::bench::Bench;
use crate::measure::{Samples, ratio};
use crate::process::{mib, usage};
use crate::report::{Result, Row};
use crate::rest::Name;

const WITHIN: Duration = Duration::from_secs(3600);
const CLIENTS: u64 = 8;
/// Into the first namespaces before anything is measured.
const FIRST_TABLES: u64 = 100;
const PAGE_TURNS: usize = 30;

pub async fn run(bench: &Bench) -> Result<()> {
    let namespaces = bench.settings.number("namespaces", 100, 10_000)?;
    let each = bench.settings.number("tables", 10, 10)?;
    let loads = bench.settings.number("loads", 500, 5000)?;
    let row = Row::of("namespaces", namespaces).with("tables", namespaces * each);
    bench.point(row, WITHIN, fill_and_measure(bench, namespaces, each, loads)).await;
    Ok(())
}

/// Makes so many namespaces with so many tables each; what listing and loading cost at the beginning and at the end.
async fn fill_and_measure(bench: &Bench, namespaces: u64, each: u64, loads: u64) -> Result<Row> {
    let page_size = bench.settings.number("page-size", 100, 100)?;
    let before = mib(usage(&bench.target.pids).rss_bytes);
    let first = (FIRST_TABLES / each.max(1)).clamp(1, namespaces);
    fill(bench, 0..first, each).await?;
    let early = list(bench, page_size, first).await?;
    let start = Instant::now();
    fill(bench, first..namespaces, each).await?;
    let made = (namespaces - first) * (each + 1);
    let row = Row::of("creates_per_s", ratio(made as f64, start.elapsed().as_secs_f64()));
    let late = list(bench, page_size, namespaces).await?;
    let (loaded, per_s) = load_at_random(bench, namespaces, each, loads).await?;
    let after = mib(usage(&bench.target.pids).rss_bytes);
    let mut row = row
        .with("loads_per_s", per_s)
        .percentiles("load_", &loaded)
        .with("pages", late.pages)
        .percentiles("tables_page_early_", &early.tables)
        .percentiles("tables_page_", &late.tables)
        .percentiles("first_page_early_", &early.first)
        .percentiles("first_page_", &late.first)
        .percentiles("middle_page_", &late.middle)
        .percentiles("last_page_", &late.last);
    if !bench.target.pids.is_empty() {
        row = row.with("rss_mib_before", before).with("rss_mib_after", after);
    }
    let listed = (late.listed >= namespaces).then(Vec::new);
    let missing = || vec![format!("{namespaces} namespaces were made, the pages list {}", late.listed)];
    bench.check("W7: every namespace is listed", listed.unwrap_or_else(missing));
    Ok(row)
}

fn namespace(bench: &Bench, number: u64) -> String {
    format!("{}_n{number}", bench.namespace)
}

/// Several clients make what is still missing, one namespace after the other.
async fn fill(bench: &Bench, numbers: std::ops::Range<u64>, each: u64) -> Result<()> {
    let next = Arc::new(AtomicU64::new(numbers.start));
    let mut making = JoinSet::new();
    for client in 0..CLIENTS {
        let catalog = bench.catalogs[client as usize % bench.catalogs.len()].clone();
        let (next, end, prefix) = (next.clone(), numbers.end, bench.namespace.clone());
        let (traits, root) = (bench.target.traits.clone(), bench.root().to_owned());
        making.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return Result::Ok(());
                }
                let namespace = format!("{prefix}_n{number}");
                catalog.create_namespace(&namespace).await?;
                for table in 0..each {
                    let name = Name { namespace: namespace.clone(), name: format!("t{table}") };
                    catalog.create_table(&name, &traits, &root).await?;
                }
            }
        });
    }
    while let Some(made) = making.join_next().await {
        made??;
    }
    Ok(())
}

/// Times of pages.
#[derive(Debug, Default)]
struct Listing {
    pages: usize,
    listed: u64,
    first: Samples,
    middle: Samples,
    last: Samples,
    /// A page of the tables of one namespace.
    tables: Samples,
}

async fn list(bench: &Bench, page_size: u64, namespaces: u64) -> Result<Listing> {
    let page = |token: &str| {
        let token = utf8_percent_encode(token, NON_ALPHANUMERIC);
        format!("namespaces?pageSize={page_size}&pageToken={token}")
    };
    let (mut listing, mut tokens) = (Listing::default(), vec![String::new()]);
    loop {
        let token = tokens.last().map_or("", String::as_str);
        let answer: Value = bench.catalog().get(&page(token)).await?.expect(200)?.json()?;
        listing.listed += answer["namespaces"].as_array().map_or(0, Vec::len) as u64;
        match answer["next-page-token"].as_str() {
            Some(next) if !next.is_empty() => tokens.push(next.to_owned()),
            _ => break,
        }
    }
    listing.pages = tokens.len();
    for turn in 0..PAGE_TURNS {
        let ends =
            [(&mut listing.first, 0), (&mut listing.middle, tokens.len() / 2), (&mut listing.last, tokens.len() - 1)];
        for (samples, at) in ends {
            samples.add(bench.catalog().get(&page(&tokens[at])).await?.expect(200)?.took);
        }
        let namespace = namespace(bench, turn as u64 % namespaces);
        let tables = format!("namespaces/{namespace}/tables?pageSize={page_size}&pageToken=");
        listing.tables.add(bench.catalog().get(&tables).await?.expect(200)?.took);
    }
    Ok(listing)
}

/// Times of loads, and loads a second.
async fn load_at_random(bench: &Bench, namespaces: u64, each: u64, loads: u64) -> Result<(Samples, f64)> {
    let (start, mut loading) = (Instant::now(), JoinSet::new());
    for client in 0..CLIENTS {
        let catalog = bench.catalogs[client as usize % bench.catalogs.len()].clone();
        let mut random = Random::from_seed(client);
        let prefix = bench.namespace.clone();
        loading.spawn(async move {
            let mut samples = Samples::default();
            for _ in 0..loads / CLIENTS {
                let (namespace, table) = (random.below(namespaces), random.below(each));
                let name = Name { namespace: format!("{prefix}_n{namespace}"), name: format!("t{table}") };
                samples.add(catalog.get(&name.path()).await?.expect(200)?.took);
            }
            Result::Ok(samples)
        });
    }
    let mut all = Samples::default();
    while let Some(samples) = loading.join_next().await {
        all.extend(&samples??);
    }
    let per_s = ratio(all.count() as f64, start.elapsed().as_secs_f64());
    Ok((all, per_s))
}
