//! The keys and signing secrets of a snapshot, which are those of its time.

use super::*;
use crate::domain::id::KeyId;
use crate::domain::report::backup::{RestoredAccess, RestoredKeys};

impl House {
    async fn restored_with(
        &self,
        name: &str,
        options: RestoreOptions,
    ) -> (RestoredKeys, FileStore) {
        let (backups, into) = (self.backups().await, self.path(name));
        let providers = providers(self.home.path());
        let report = backups.restore(None, &into, options, &providers, Arc::new(NoProgress)).await;
        let store = match options.restored_as {
            RestoredAs::Copy => FileStore::open(&into).await.unwrap(),
            RestoredAs::Original => open(self.home.path(), name).await,
        };
        (report.unwrap().keys.unwrap(), store)
    }
}

fn is_good(store: &FileStore, id: KeyId) -> bool {
    store.keys().get(id).unwrap().is_good_at(store.now())
}

#[tokio::test]
async fn a_restore_names_the_keys_and_secrets_that_it_makes_good_again() {
    let house = House::new().await;
    let store = &house.store;
    let new = |name: &str| NewKey::new(name, Scope::All, [KeyScope::Read]);
    let (gone, _) = store.keys().create(new("gone before")).await.unwrap();
    store.keys().revoke(gone.id).await.unwrap();
    let (leaked, _) = store.keys().create(new("leaked")).await.unwrap();
    let secret = store.signing().rotate().await.unwrap().kid;

    let taken_at = house.back_up().await.snapshot.created_at;
    store.keys().revoke(leaked.id).await.unwrap();
    store.signing().rotate().await.unwrap();
    store.signing().revoke(&secret).await.unwrap();

    for (name, options, is_kept) in [
        ("original", RestoreOptions::from(RestoredAs::Original), true),
        ("copy", RestoreOptions::from(RestoredAs::Copy), false),
        ("kept", RestoreOptions::from(RestoredAs::Copy).with_access(RestoredAccess::Kept), true),
        (
            "revoked",
            RestoreOptions::from(RestoredAs::Original).with_access(RestoredAccess::Revoked),
            false,
        ),
    ] {
        let (brought, restored) = house.restored_with(name, options).await;
        assert_eq!(brought.taken_at, taken_at, "{name}");
        assert_eq!(brought.keys.iter().map(|key| key.id).collect::<Vec<_>>(), [leaked.id]);
        let kids: Vec<_> = brought.secrets.iter().map(|secret| &secret.kid).collect();
        assert_eq!(kids, [&secret], "{name}");
        assert_eq!(brought.access, options.access);

        assert_eq!(is_good(&restored, leaked.id), is_kept, "{name}");
        assert!(!is_good(&restored, gone.id) && restored.keys().exist(), "{name} stays closed");
        let signs = restored.signing().secrets().iter().any(|one| one.kid == secret);
        assert_eq!(signs, is_kept, "{name}");
        restored.close().await;
    }
    house.close().await;
}

#[tokio::test]
async fn files_that_are_restored_into_a_running_store_bring_no_keys() {
    let house = House::new().await;
    let file = upload(&house.store, "42", "one").await;
    let new = NewKey::new("k", Scope::All, [KeyScope::Read]);
    let (key, _) = house.store.keys().create(new).await.unwrap();
    house.back_up().await;
    house.store.keys().revoke(key.id).await.unwrap();
    house.store.scoped(&Scope::All).delete(file.file_id).await.unwrap();
    house.store.admin().purge(&NoProgress).await.unwrap();

    let (backups, selection) = (house.backups().await, Selection::File(file.file_id));
    let admin = house.store.admin();
    let report = admin.restore(&backups, None, selection, Arc::new(NoProgress)).await.unwrap();
    assert_eq!((report.restored, report.keys), (1, None));
    assert!(!is_good(&house.store, key.id));
    house.close().await;
}
