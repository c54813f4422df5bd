//! Until the features are there.
use catalog::error::Result;
#[derive(Clone)]
pub struct Catalog {
    pub warehouses: catalog::warehouses::Warehouses,
    pub namespaces: catalog::namespaces::Namespaces,
    pub mutations: catalog::idempotency::Mutations,
    pub purges: Purges,
    pub tables: Tabulars,
    pub views: Tabulars,
}
#[derive(Clone)]
pub struct Purges;
impl Purges {
    pub async fn run_once(&self, _: &dyn catalog::context::Clock) -> Result<bool> {
        Ok(false)
    }
}

#[derive(Clone)]
pub struct Tabulars;
impl Tabulars {
    pub async fn exists(
        &self,
        _: &catalog::context::RequestContext,
        _: &catalog::warehouses::Warehouse,
        _: &catalog::ident::TableIdent,
    ) -> Result<()> {
        Ok(())
    }
}
