//! What a rebase costs as the list of manifests grows: to read a list, and to merge three and write the result.

use std::hint::black_box;

use catalog::testing::lists::{Raced, count};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

const MANIFESTS: [usize; 4] = [10, 100, 1_000, 10_000];

fn lists(c: &mut Criterion) {
    let mut group = c.benchmark_group("lists");
    group.sample_size(20);
    for manifests in MANIFESTS {
        let raced = Raced::on(manifests);
        let written = raced.merge();
        let size = |name| BenchmarkId::new(name, manifests);
        group.bench_function(size("read"), |b| b.iter(|| count(black_box(&written))));
        group.bench_function(size("merge and write"), |b| b.iter(|| black_box(&raced).merge()));
        group.bench_function(size("merge and write all"), |b| b.iter(|| black_box(&raced).merge_on_read()));
    }
    group.finish();
}

criterion_group!(benches, lists);
criterion_main!(benches);
