//! Bindings.

use super::*;
use crate::domain::provider::binding::{Binding, BindingChange, NewBinding};
use crate::metadata::BindingOutcome;

fn new(organization: OrganizationNumber, code: &str) -> NewBinding {
    NewBinding {
        organization,
        organization_name: "Größe & Söhne".into(),
        provider: provider(code),
        sync_enabled: true,
    }
}

fn terminate() -> BindingChange {
    BindingChange { is_active: Some(false), ..BindingChange::default() }
}

fn resume() -> BindingChange {
    BindingChange { is_active: Some(true), ..BindingChange::default() }
}

fn done(changed: BindingOutcome) -> Binding {
    match changed {
        BindingOutcome::Done(binding) => binding,
        other => panic!("{other:?}"),
    }
}

async fn create(
    metadata: &dyn Metadata,
    organization: OrganizationNumber,
    code: &str,
    now: Timestamp,
) -> Binding {
    done(metadata.create_binding(new(organization, code), now).await.unwrap())
}

pub(crate) async fn a_created_binding_is_active_and_listed(metadata: &dyn Metadata) {
    let largest = OrganizationNumber::MAX;
    let seven = create(metadata, number(7), "s3", at(1)).await;
    let other = create(metadata, largest, "LOCAL", at(2)).await;
    let expected = Binding {
        id: seven.id,
        organization: number(7),
        organization_name: "Größe & Söhne".into(),
        provider: provider("s3"),
        sync_enabled: true,
        is_active: true,
        effective_from: at(1),
        effective_to: None,
    };

    assert_eq!(seven, expected);
    assert_eq!(metadata.active_binding(number(7)).await.unwrap(), Some(seven.clone()));
    assert_eq!(metadata.active_binding(number(8)).await.unwrap(), None);
    assert_eq!(
        metadata.list_bindings(Some(number(7))).await.unwrap(),
        std::slice::from_ref(&seven)
    );
    assert_eq!(metadata.list_bindings(None).await.unwrap(), [other, seven], "newest first");
}

pub(crate) async fn a_second_active_binding_is_refused(metadata: &dyn Metadata) {
    let first = create(metadata, number(7), "s3", at(1)).await;
    let second = metadata.create_binding(new(number(7), "gcs"), at(2)).await.unwrap();
    assert_eq!(second, BindingOutcome::AlreadyActive);
    assert_eq!(metadata.list_bindings(Some(number(7))).await.unwrap(), [first]);
}

pub(crate) async fn of_concurrent_creations_one_is_done(metadata: &dyn Metadata) {
    let creations = (0..8).map(|_| metadata.create_binding(new(number(7), "s3"), at(1)));
    let outcomes = futures_util::future::join_all(creations).await;
    let done = outcomes.iter().filter(|outcome| matches!(outcome, Ok(BindingOutcome::Done(_))));
    let refused =
        outcomes.iter().filter(|outcome| matches!(outcome, Ok(BindingOutcome::AlreadyActive)));
    assert_eq!((done.count(), refused.count()), (1, 7));
    assert_eq!(metadata.list_bindings(Some(number(7))).await.unwrap().len(), 1);
}

pub(crate) async fn a_change_leaves_the_rest_as_it_was(metadata: &dyn Metadata) {
    let mut expected = create(metadata, number(7), "s3", at(1)).await;
    let unchanged =
        metadata.change_binding(number(7), BindingChange::default(), &[], at(2)).await.unwrap();
    assert_eq!(done(unchanged), expected);

    let change = BindingChange { provider: Some(provider("gcs")), ..resume() };
    expected.provider = provider("gcs");
    assert_eq!(
        done(metadata.change_binding(number(7), change, &[], at(3)).await.unwrap()),
        expected
    );

    let change = BindingChange {
        organization_name: Some("New".into()),
        sync_enabled: Some(false),
        ..BindingChange::default()
    };

    expected.organization_name = "New".into();
    expected.sync_enabled = false;
    assert_eq!(
        done(metadata.change_binding(number(7), change, &[], at(4)).await.unwrap()),
        expected
    );
    assert_eq!(metadata.active_binding(number(7)).await.unwrap(), Some(expected));
}

pub(crate) async fn a_terminated_binding_resumes_with_its_id_and_start(metadata: &dyn Metadata) {
    let created = create(metadata, number(7), "s3", at(1)).await;
    let ended = done(metadata.change_binding(number(7), terminate(), &[], at(5)).await.unwrap());
    assert_eq!(ended, Binding { is_active: false, effective_to: Some(at(5)), ..created.clone() });
    assert_eq!(metadata.active_binding(number(7)).await.unwrap(), None);
    assert_eq!(metadata.list_bindings(Some(number(7))).await.unwrap(), [ended]);

    let change = BindingChange { sync_enabled: Some(false), ..resume() };
    let resumed =
        metadata.change_binding(number(7), change, &[provider("s3")], at(9)).await.unwrap();
    let expected = Binding { sync_enabled: false, ..created };
    assert_eq!(done(resumed), expected);
    assert_eq!(metadata.active_binding(number(7)).await.unwrap(), Some(expected));
}

pub(crate) async fn resuming_needs_an_active_provider(metadata: &dyn Metadata) {
    create(metadata, number(7), "s3", at(1)).await;
    metadata.change_binding(number(7), terminate(), &[], at(2)).await.unwrap();
    let refused =
        metadata.change_binding(number(7), resume(), &[provider("LOCAL")], at(3)).await.unwrap();
    assert_eq!(refused, BindingOutcome::ProviderInactive(provider("s3")));
    assert_eq!(metadata.active_binding(number(7)).await.unwrap(), None);

    let change = BindingChange { provider: Some(ProviderCode::local()), ..resume() };
    let resumed =
        metadata.change_binding(number(7), change, &[ProviderCode::local()], at(4)).await.unwrap();
    assert_eq!(done(resumed).provider, ProviderCode::local(), "the provider it will have counts");
}

pub(crate) async fn without_a_binding_there_is_nothing_to_change(metadata: &dyn Metadata) {
    let none = BindingOutcome::NoneActive;
    let active = [provider("s3")];
    assert_eq!(metadata.change_binding(number(7), resume(), &active, at(1)).await.unwrap(), none);
    create(metadata, number(7), "s3", at(1)).await;
    metadata.change_binding(number(7), terminate(), &active, at(2)).await.unwrap();
    for change in [BindingChange::default(), terminate()] {
        assert_eq!(metadata.change_binding(number(7), change, &active, at(3)).await.unwrap(), none);
    }
}

pub(crate) async fn the_newest_terminated_binding_resumes(metadata: &dyn Metadata) {
    create(metadata, number(7), "s3", at(1)).await;
    metadata.change_binding(number(7), terminate(), &[], at(2)).await.unwrap();
    let newest = create(metadata, number(7), "gcs", at(3)).await;
    metadata.change_binding(number(7), terminate(), &[], at(4)).await.unwrap();
    let resumed =
        metadata.change_binding(number(7), resume(), &[provider("gcs")], at(5)).await.unwrap();
    assert_eq!(done(resumed), newest);
}

pub(crate) async fn each_change_of_a_binding_shows_at_once(metadata: &dyn Metadata) {
    let active = async || metadata.active_binding(number(7)).await.unwrap();
    assert_eq!(active().await, None);
    assert_eq!(active().await, None, "asked again");

    let created = create(metadata, number(7), "s3", at(1)).await;
    assert_eq!(active().await.as_ref(), Some(&created));

    let elsewhere = BindingChange { provider: Some(provider("gcs")), ..BindingChange::default() };
    let changed = done(metadata.change_binding(number(7), elsewhere, &[], at(2)).await.unwrap());
    assert_ne!(changed, created);
    assert_eq!(active().await, Some(changed));

    metadata.change_binding(number(7), terminate(), &[], at(3)).await.unwrap();
    assert_eq!(active().await, None, "terminated");

    let providers = [provider("gcs")];
    metadata.change_binding(number(7), resume(), &providers, at(4)).await.unwrap();
    assert!(active().await.is_some(), "resumed");

    metadata.forget_organization(&organization("7")).await.unwrap();
    assert_eq!(active().await, None, "forgotten");
}

pub(crate) async fn the_active_bindings_of_several_are_read_together(metadata: &dyn Metadata) {
    for organization in [7, 8, 9] {
        super::syncs::bind(metadata, organization, "s3").await;
    }
    let ended = BindingChange { is_active: Some(false), ..BindingChange::default() };
    metadata.change_binding(number(8), ended, &[], at(1)).await.unwrap();

    let asked = [9, 8, 7, 6].map(number);
    let mut found = metadata.active_bindings(&asked).await.unwrap();
    found.sort_by_key(|binding| binding.organization);
    let found: Vec<_> = found.iter().map(|binding| binding.organization).collect();
    assert_eq!(found, [number(7), number(9)]);
    assert_eq!(metadata.active_bindings(&[]).await.unwrap(), []);
}
