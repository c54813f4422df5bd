//! What tests of all layers share: a clock that is told the time, and one conformance suite that every store must pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use uuid::Uuid;

use crate::context::Clock;

pub mod attempts;
pub mod commit_log;
pub mod events;
pub mod idempotency;
pub mod ledger;
pub mod lineage;
pub mod lists;
pub mod namespaces;
pub mod places;
pub mod pointers;
pub mod principals;
pub mod purge;
pub mod races;
pub mod rebase;
pub mod tabulars;
pub mod walks;
pub mod warehouses;
pub mod world;

pub use world::Checked;

/// A clock that stands still until it is told to go on; clones show the same time.
#[derive(Debug, Clone)]
pub struct TestClock {
    now_ms: Arc<AtomicI64>,
}

impl TestClock {
    pub fn at(now_ms: i64) -> Self {
        Self { now_ms: Arc::new(AtomicI64::new(now_ms)) }
    }

    pub fn advance(&self, by: Duration) {
        let by_ms = i64::try_from(by.as_millis()).expect("a test lasts less than an age of the world");
        self.now_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}

/// An empty folder of its own, gone when the value is dropped.
pub fn scratch_folder() -> std::io::Result<tempfile::TempDir> {
    tempfile::tempdir()
}

/// Declares one test for each case of the suite: how a test is marked, its arguments, and a block that makes the store
/// and whatever must be kept as long as it.
///
/// ```ignore
/// catalog::store_conformance!(#[sqlx::test] (pool: PgPool) { (PostgresStore::over(pool), ()) });
/// ```
#[macro_export]
macro_rules! store_conformance {
    (#[$test:meta] $args:tt $make:block) => {
        $crate::store_conformance! { @suite #[$test] $args $make
            warehouses {
                a_warehouse_is_found_by_its_name
                a_warehouse_name_is_given_once
                warehouses_are_listed_by_name_in_pages
                roots_do_not_overlap
                of_racing_creators_of_nested_roots_one_wins
                a_change_replaces_all_but_name_and_root
                a_change_of_what_was_changed_does_nothing
                an_empty_warehouse_is_deleted_with_its_name_and_its_root
                a_warehouse_that_holds_something_stays
                a_namespace_and_the_deletion_of_its_warehouse_exclude_each_other
                a_deleted_warehouse_takes_no_namespace
                purges_outlive_their_warehouse
                purges_of_a_deleted_warehouse_go_over_to_the_next_one_there
                purges_at_allowed_locations_go_over_to_the_next_warehouse_there
            }
            namespaces {
                a_namespace_comes_back_as_it_was_made
                names_are_told_apart_by_their_bytes
                levels_are_not_joined
                levels_of_a_kilobyte_can_be_nested
                a_name_that_no_name_can_be_is_missing
                a_namespace_needs_its_parent
                a_namespace_is_made_once_below_each_parent
                warehouses_do_not_share_namespaces
                a_listing_shows_one_level
                pages_lose_and_double_nothing_whatever_their_size
                properties_change_by_key
                properties_of_no_namespace_are_missing
                parallel_changes_of_different_keys_all_survive
                a_namespace_with_a_child_a_table_or_a_view_stays
                of_racing_creators_one_wins
                a_child_and_the_drop_of_its_parent_exclude_each_other
                a_table_and_the_drop_of_its_namespace_exclude_each_other
                siblings_churn_without_harm_to_a_listing
                a_receipt_is_kept_with_what_it_answers
                what_is_refused_keeps_no_receipt
                a_key_that_is_taken_changes_nothing
            }
            tabulars {
                a_listing_shows_one_kind_of_one_namespace
                pages_lose_and_double_nothing_whatever_their_size
                a_pointer_is_found_by_all_of_its_name
            }
            pointers {
                a_create_makes_the_pointer_that_it_names
                tables_and_views_share_one_name_space
                a_create_needs_its_namespace
                a_move_brings_the_next_version
                a_change_of_an_old_pointer_is_lost
                a_lost_move_writes_nothing
                a_rename_takes_the_pointer_along
                a_rename_needs_a_free_name_in_a_namespace
                a_dropped_name_is_free_again
                a_table_uuid_lives_under_one_name
                a_table_uuid_may_live_in_two_warehouses
                an_overwrite_brings_another_uuid_and_place
                several_changes_are_made_together
                one_failing_change_leaves_all_untouched
                a_receipt_is_kept_with_the_change
                the_receipts_of_several_requests_are_kept_with_the_change
                a_key_that_is_taken_changes_nothing
                names_of_any_kind_come_back_as_they_are
            }
            places {
                a_place_at_above_or_below_another_is_taken
                neighbours_may_share_the_beginning_of_a_name
                the_owner_of_a_place_is_named
                a_table_may_move_within_its_own_place
                a_dropped_table_leaves_its_place
                views_own_no_place
                warehouses_do_not_ask_each_other_for_places
                tables_of_one_swap_may_not_overlap_either
                of_racing_creators_of_nested_places_one_wins
            }
            lineage {
                a_pointer_is_read_with_what_landed_of_the_asked
                a_snapshot_lands_once
                two_tables_may_take_the_same_snapshot_id
                the_lineage_is_asked_by_table_or_in_the_whole_warehouse
                the_lineage_outlives_rename_and_drop
                a_table_made_anew_starts_without_lineage
                a_uuid_that_comes_back_finds_its_lineage
                an_overwrite_with_another_uuid_finds_the_lineage_of_that
                a_register_of_many_snapshots_is_remembered_whole
                a_staged_snapshot_has_no_ref_and_a_first_one_no_parent
            }
            ledger {
                a_row_comes_back_as_it_was_written
                a_row_takes_the_place_of_the_writers_former
                a_first_snapshot_comes_when_it_comes_and_a_first_epoch_too
                a_writer_that_comes_twice_in_a_swap_has_one_row
                writers_are_told_apart_by_ref_kind_id_and_part
                any_text_names_a_writer_its_ref_its_part_or_its_partitions
                a_snapshot_is_found_by_writer_position_and_ref
                a_snapshot_comes_back_as_it_landed
                of_many_snapshots_at_one_position_the_newest_are_found
                rows_of_a_writer_are_found_by_all_that_names_it
                what_adopts_keeps_what_is_known_of_its_own_uuid
                a_carried_snapshot_is_found_on_its_other_ref_too
                a_uuid_that_comes_keeps_what_is_known_of_it
                a_swap_that_is_not_applied_leaves_the_ledger_as_it_was
                the_ledger_is_the_tables_whatever_its_name
                writers_are_listed_in_pages_by_ref_and_writer
                an_attempt_of_many_writers_is_one_swap
                a_change_of_the_ledger_alone_moves_the_version
            }
            walks {
                a_walk_goes_back_over_the_parents
                a_walk_ends_where_it_is_told_to
                a_walk_ends_at_a_gap
                a_walk_of_thousands_is_in_order
                a_class_is_remembered_once
                a_class_may_come_with_the_snapshot
                old_snapshots_are_forgotten_oldest_first
            }
            attempts {
                an_applied_swap_is_committed_however_often_it_is_asked
                an_attempt_that_never_came_is_aborted
                a_refused_swap_is_aborted
                a_swap_that_comes_after_its_resolver_does_nothing
                a_swap_that_is_sent_twice_is_applied_once
                swap_and_resolver_at_the_same_time_agree
                old_attempts_are_forgotten_oldest_first
            }
            commit_log {
                an_entry_comes_back_as_it_was_written
                an_entry_that_is_written_twice_is_there_once
                every_outcome_is_kept
                the_log_is_read_newest_first_in_pages
                a_request_is_found_by_its_key_and_by_its_snapshot
                the_entries_of_a_swap_are_there_when_it_is
                what_comes_after_its_resolver_leaves_no_entry_and_no_event
                old_entries_are_forgotten_oldest_first
            }
            events {
                an_event_comes_back_as_it_was_told
                events_are_read_in_pages_from_any_place_on
                a_swap_that_is_not_applied_tells_nothing
                a_reader_beside_racing_commits_misses_and_doubles_nothing
                old_events_are_forgotten_oldest_first
            }
            races {
                of_racing_creators_of_a_name_one_wins
                of_racing_moves_from_one_base_one_wins
                of_racing_registers_of_a_uuid_one_wins
                of_racing_moves_with_one_key_one_wins
                swaps_with_the_same_keys_in_any_order_end
                swaps_over_the_same_tables_in_any_order_end
                transactions_that_create_in_opposite_order_end
                renames_across_each_other_end
                of_a_move_a_rename_and_a_drop_one_wins
            }
            idempotency {
                an_answer_comes_back_as_it_was_kept
                the_first_answer_to_a_key_stays
                of_racing_answers_to_a_key_one_is_kept
                a_key_belongs_to_one_warehouse
                old_receipts_are_forgotten_oldest_first
            }
            principals {
                a_principal_comes_back_as_it_was_made
                of_racing_principals_of_one_name_one_is_made
                a_name_is_free_again_once_its_principal_is_revoked
                a_rotated_principal_has_another_secret_and_keeps_its_id
                principals_are_listed_in_pages_by_age
                of_racing_signing_keys_all_get_the_first
            }
            purge {
                a_task_is_claimed_with_the_place_of_its_warehouse
                a_task_waits_for_its_time_and_the_oldest_comes_first
                a_holder_that_dies_loses_its_task
                a_finished_task_is_gone_and_may_be_finished_twice
                a_postponed_task_comes_back_later_and_knows_its_failures
                racing_claims_take_each_task_once
                a_swap_that_changes_nothing_leaves_no_task
                a_place_is_purged_from_the_drop_until_the_task_is_finished
                a_move_of_one_pointer_may_leave_the_purge_of_a_table_too
                what_adopts_files_waits_until_none_of_them_are_purged
            }
        }
    };
    (@suite #[$test:meta] $args:tt $make:block $($feature:ident { $($case:ident)+ })+) => {
        $($crate::store_conformance!(@feature #[$test] $args $make $feature { $($case)+ });)+
    };
    (@feature #[$test:meta] $args:tt $make:block $feature:ident { $($case:ident)+ }) => {
        mod $feature {
            use super::*;
            $($crate::store_conformance!(@case #[$test] $args $make $feature $case);)+
        }
    };
    (@case #[$test:meta] $args:tt $make:block $feature:ident $case:ident) => {
        #[$test]
        async fn $case $args {
            let (store, _kept) = $make;
            $crate::testing::$feature::$case(&store).await.unwrap();
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A case that the macro does not name would never run.
    #[test]
    fn every_case_of_the_suite_is_declared() {
        let declared = include_str!("testing.rs");
        let features = [
            include_str!("testing/attempts.rs"),
            include_str!("testing/commit_log.rs"),
            include_str!("testing/events.rs"),
            include_str!("testing/idempotency.rs"),
            include_str!("testing/ledger.rs"),
            include_str!("testing/lineage.rs"),
            include_str!("testing/namespaces.rs"),
            include_str!("testing/places.rs"),
            include_str!("testing/pointers.rs"),
            include_str!("testing/principals.rs"),
            include_str!("testing/purge.rs"),
            include_str!("testing/races.rs"),
            include_str!("testing/tabulars.rs"),
            include_str!("testing/walks.rs"),
            include_str!("testing/warehouses.rs"),
        ];
        for source in features {
            for case in source.split("pub async fn ").skip(1) {
                let name = case.split('(').next().unwrap();
                let named = declared.lines().any(|line| line.trim() == name);
                assert!(named, "{name} is not in store_conformance!");
            }
        }
    }

    #[test]
    fn a_clock_goes_on_when_it_is_told_to() {
        let clock = TestClock::at(5);
        clock.clone().advance(Duration::from_secs(2));
        assert_eq!(clock.now_ms(), 2_005);
    }
}
