//! What every route shares.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use super::admission::{Admission, AdmissionPermit};
use super::auth::Auth;
use super::engine::{Engine, Health};
use super::error::ApiError;
use super::model::Model;
use super::settings::HttpSettings;
use super::turns::Turns;
use crate::telemetry::metrics::ADMISSION_REJECTIONS_TOTAL;

/// Renders the metrics page.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Shared by all workers. The server can listen before the model is there: until
/// [`HttpState::set_model`], requests get 503 `loading`.
pub struct HttpState {
    settings: HttpSettings,
    auth: ArcSwap<Auth>,
    engine: Arc<dyn Engine>,
    admission: Admission,
    turns: Turns,
    model: OnceLock<Arc<Model>>,
    render_metrics: RenderMetrics,
}

impl HttpState {
    /// State around a runtime.
    pub fn new(
        settings: HttpSettings,
        engine: Arc<dyn Engine>,
        render_metrics: RenderMetrics,
    ) -> Self {
        let admission = Admission::new(settings.limits.max_requests);
        let auth = ArcSwap::from_pointee(settings.auth.clone());
        let turns = Turns::new(settings.workers);
        let model = OnceLock::new();
        Self { settings, auth, engine, admission, turns, model, render_metrics }
    }

    /// Makes the model known; once. Gives it back when there is one already.
    pub fn set_model(&self, model: Model) -> Result<(), Arc<Model>> {
        self.model.set(Arc::new(model))
    }

    /// Replaces the keys, for requests from now on.
    pub fn set_auth(&self, auth: Auth) {
        self.auth.store(Arc::new(auth));
    }

    /// The settings it was built with.
    pub fn settings(&self) -> &HttpSettings {
        &self.settings
    }

    /// Who may call now.
    pub fn auth(&self) -> Arc<Auth> {
        self.auth.load_full()
    }

    /// The runtime.
    pub fn engine(&self) -> &dyn Engine {
        self.engine.as_ref()
    }

    /// The permits.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Whose request is read next.
    pub fn turns(&self) -> &Turns {
        &self.turns
    }

    /// The metrics page.
    pub fn render_metrics(&self) -> String {
        (self.render_metrics)()
    }

    /// The model, or 503 while there is none.
    pub fn model(&self) -> Result<Arc<Model>, ApiError> {
        self.model.get().cloned().ok_or_else(loading)
    }

    /// 503 unless generations are taken now.
    pub fn ready(&self) -> Result<(), ApiError> {
        let unavailable = |state, reason| Err(ApiError::Unavailable { state, reason });
        match self.engine.status().health {
            Health::Ready if self.model.get().is_some() => Ok(()),
            Health::Ready | Health::Loading => Err(loading()),
            Health::Draining => {
                unavailable("draining", "it is stopping and takes no new requests".into())
            }
            Health::Unhealthy(reason) => unavailable("unhealthy", reason),
        }
    }

    /// A permit for `generations`, or 503 or 429, counted.
    pub fn admit(&self, generations: u32) -> Result<AdmissionPermit, ApiError> {
        let admitted = self.ready().and_then(|()| {
            self.admission.try_admit(generations).ok_or_else(|| ApiError::QueueFull {
                retry_after_s: self.engine.status().retry_after_s(),
            })
        });
        if let Err(error) = &admitted {
            let reason = error.class().code.unwrap_or("other");
            metrics::counter!(ADMISSION_REJECTIONS_TOTAL, "reason" => reason).increment(1);
        }
        admitted
    }
}

fn loading() -> ApiError {
    ApiError::Unavailable { state: "loading", reason: "the model is being loaded".into() }
}
