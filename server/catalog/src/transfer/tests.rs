use futures::stream;

use super::*;

/// A database in memory. After `writes_left` batches it takes no more.
#[derive(Default)]
struct Memory {
    tables: std::collections::HashMap<&'static str, Vec<Row>>,
    begun: bool,
    writes_left: Option<usize>,
}

impl Memory {
    fn with(rows: usize) -> Self {
        let rows = (0..rows).map(|n| vec![Value::Int(n as i64)]).collect();
        Self { tables: [("writer", rows)].into(), ..Self::default() }
    }

    fn table(&self, table: &Table) -> &[Row] {
        self.tables.get(table.name).map_or(&[], Vec::as_slice)
    }
}

#[async_trait]
impl Source for Memory {
    async fn count(&mut self, table: &Table) -> Result<u64, StoreError> {
        Ok(self.table(table).len() as u64)
    }

    fn rows<'a>(&'a mut self, table: &'a Table, skip: u64) -> BoxStream<'a, Result<Row, StoreError>> {
        stream::iter(self.table(table).iter().skip(skip as usize).cloned().map(Ok)).boxed()
    }
}

#[async_trait]
impl Target for Memory {
    async fn is_begun(&mut self) -> Result<bool, StoreError> {
        Ok(self.begun)
    }

    async fn begin(&mut self, _at_ms: i64) -> Result<(), StoreError> {
        self.begun = true;
        Ok(())
    }

    async fn write(&mut self, table: &Table, rows: &[Row]) -> Result<(), StoreError> {
        if self.writes_left == Some(0) {
            return Err(StoreError::Aborted("full".into()));
        }
        self.writes_left = self.writes_left.map(|left| left - 1);
        let name = TABLES.iter().find(|known| known.name == table.name).unwrap().name;
        self.tables.entry(name).or_default().extend_from_slice(rows);
        Ok(())
    }

    async fn end(&mut self) -> Result<(), StoreError> {
        self.begun = false;
        Ok(())
    }
}

async fn copied(source: &mut Memory, target: &mut Memory) -> Result<Vec<Copied>, TransferError> {
    copy(source, target, 0, &mut |_| {}).await
}

#[tokio::test]
async fn a_copy_that_was_cut_off_goes_on_where_it_stopped() {
    let (mut source, mut target) = (Memory::with(2 * BATCH + 1), Memory { writes_left: Some(1), ..Memory::default() });
    let cut = copied(&mut source, &mut target).await.unwrap_err();
    assert!(matches!(cut, TransferError::Target { table: "writer", .. }), "{cut}");
    assert!(target.begun);
    target.writes_left = Some(2);
    let mut told = Vec::new();
    let all = copy(&mut source, &mut target, 0, &mut |progress| told.push(progress)).await.unwrap();
    let first = told.iter().find(|progress| progress.table == "writer").unwrap();
    assert_eq!((first.done, first.total), (BATCH as u64, 2 * BATCH as u64 + 1));
    assert_eq!(all.iter().map(|copied| copied.rows).sum::<u64>(), 2 * BATCH as u64 + 1);
    assert!(!target.begun);
}

#[tokio::test]
async fn a_target_that_holds_something_is_left_alone() {
    let mut target = Memory::with(1);
    let refused = copied(&mut Memory::with(5), &mut target).await.unwrap_err();
    assert!(matches!(refused, TransferError::NotEmpty { table: "writer", rows: 1 }), "{refused}");
    assert!(!target.begun);
}

#[tokio::test]
async fn a_source_that_changed_between_two_runs_is_found_out() {
    let (mut source, mut target) = (Memory::with(BATCH + 1), Memory { writes_left: Some(1), ..Memory::default() });
    copied(&mut source, &mut target).await.unwrap_err();
    source.tables.get_mut("writer").unwrap()[0] = vec![Value::Int(-1)];
    target.writes_left = None;
    let refused = copied(&mut source, &mut target).await.unwrap_err();
    assert!(matches!(refused, TransferError::Differs { .. }), "{refused}");
    assert!(target.begun, "it must not be served");
}

#[test]
fn values_that_are_written_alike_have_other_sums() {
    let sum = |row: &[Value]| {
        let mut sum = Sha256::new();
        row.iter().for_each(|value| add(&mut sum, value));
        sum.finalize()
    };
    let text = |text: &str| Value::Text(text.to_owned());
    let levels = |levels: &[&str]| Value::Levels(levels.iter().map(|level| (*level).to_owned()).collect());
    assert_ne!(sum(&[text("a"), text("b")]), sum(&[text("ab"), text("")]));
    assert_ne!(sum(&[Value::Null]), sum(&[text("")]));
    assert_ne!(sum(&[Value::Bool(true)]), sum(&[Value::Int(1)]));
    assert_ne!(sum(&[levels(&["a", "b"])]), sum(&[levels(&["a"]), text("b")]));
}

#[test]
fn a_batch_of_the_widest_table_can_be_bound() {
    let bound_at_most = 32_766;
    assert!(TABLES.iter().all(|table| table.columns.len() * BATCH <= bound_at_most));
}
