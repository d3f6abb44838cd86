//! Parallel Synchronization and Communication Instructions.

use crate::form::Form;

pub mod activemask;
pub mod atom;
pub mod atomic;
pub mod bar;
pub mod bar_warp;
pub mod barrier_cluster;
pub mod clusterlaunchcontrol;
pub mod elect;
pub mod fence;
pub mod griddepcontrol;
pub mod match_sync;
pub mod mbarrier;
pub mod membar;
pub mod red;
pub mod red_async;
pub mod redux;
pub mod tensormap_fence;
pub mod vote;

/// Records of this chapter.
pub const FORMS: &[&Form] = &[
    &bar::BAR_SYNC,
    &bar::BAR_ARRIVE,
    &bar::BAR_RED_POPC,
    &bar::BAR_RED_POPC_COUNT,
    &bar::BAR_RED_AND,
    &bar::BAR_RED_AND_COUNT,
    &bar::BAR_RED_OR,
    &bar::BAR_RED_OR_COUNT,
    &bar::BARRIER_SYNC,
    &bar::BARRIER_ARRIVE,
    &bar::BARRIER_RED_POPC,
    &bar::BARRIER_RED_POPC_COUNT,
    &bar::BARRIER_RED_AND,
    &bar::BARRIER_RED_AND_COUNT,
    &bar::BARRIER_RED_OR,
    &bar::BARRIER_RED_OR_COUNT,
    &bar_warp::BAR_WARP_SYNC,
    &barrier_cluster::BARRIER_CLUSTER_ARRIVE,
    &barrier_cluster::BARRIER_CLUSTER_WAIT,
    &membar::MEMBAR,
    &membar::MEMBAR_PROXY,
    &fence::FENCE,
    &fence::FENCE_ACQUIRE_SHARED,
    &fence::FENCE_RELEASE_SHARED,
    &fence::FENCE_MBARRIER_INIT,
    &fence::FENCE_PROXY,
    &fence::FENCE_PROXY_RELEASE,
    &fence::FENCE_PROXY_ACQUIRE,
    &fence::FENCE_PROXY_ASYNC_ACQUIRE,
    &fence::FENCE_PROXY_ASYNC_RELEASE,
    &atom::ATOM_BITWISE,
    &atom::ATOM_EXCH,
    &atom::ATOM_CAS,
    &atom::ATOM_ADD,
    &atom::ATOM_WRAPPING,
    &atom::ATOM_MIN_MAX,
    &atom::ATOM_ADD_HALF,
    &atom::ATOM_VECTOR_F32,
    &atom::ATOM_VECTOR_HALF,
    &red::RED_BITWISE,
    &red::RED_ADD,
    &red::RED_WRAPPING,
    &red::RED_MIN_MAX,
    &red::RED_ADD_HALF,
    &red::RED_VECTOR_F32,
    &red::RED_VECTOR_HALF,
    &vote::VOTE_SYNC,
    &vote::VOTE_SYNC_BALLOT,
    &vote::VOTE,
    &vote::VOTE_BALLOT,
    &match_sync::MATCH_ANY,
    &match_sync::MATCH_ALL,
    &activemask::ACTIVEMASK,
    &redux::REDUX_INTEGER,
    &redux::REDUX_BITWISE,
    &redux::REDUX_FLOAT,
    &griddepcontrol::GRIDDEPCONTROL,
    &elect::ELECT,
    &red_async::RED_ASYNC_INC,
    &red_async::RED_ASYNC_MIN,
    &red_async::RED_ASYNC_AND,
    &red_async::RED_ASYNC_ADD,
    &red_async::RED_ASYNC_RELEASE,
    &mbarrier::INIT,
    &mbarrier::INVAL,
    &mbarrier::EXPECT_TX,
    &mbarrier::COMPLETE_TX_COUNT,
    &mbarrier::ARRIVE,
    &mbarrier::ARRIVE_CLUSTER,
    &mbarrier::ARRIVE_EXPECT_TX,
    &mbarrier::ARRIVE_EXPECT_TX_CLUSTER,
    &mbarrier::ARRIVE_NO_COMPLETE,
    &mbarrier::DROP_ARRIVE,
    &mbarrier::DROP_CLUSTER,
    &mbarrier::DROP_EXPECT_TX,
    &mbarrier::DROP_EXPECT_TX_CLUSTER,
    &mbarrier::DROP_NO_COMPLETE,
    &mbarrier::TEST_WAIT,
    &mbarrier::TEST_WAIT_PARITY,
    &mbarrier::TRY_WAIT,
    &mbarrier::TRY_WAIT_PARITY,
    &mbarrier::PENDING_COUNT,
    &tensormap_fence::CP_FENCEPROXY,
    &clusterlaunchcontrol::TRY_CANCEL,
    &clusterlaunchcontrol::IS_CANCELED,
    &clusterlaunchcontrol::FIRST_CTAID,
    &clusterlaunchcontrol::FIRST_CTAID_X,
    &clusterlaunchcontrol::FIRST_CTAID_Y,
    &clusterlaunchcontrol::FIRST_CTAID_Z,
];
