// What holds in every order.
#pragma once

#include "absl/status/status.h"
#include "runtime/handovers/Network.h"

namespace grok::handovers {

/// Proves that in no order of the processes a word is overwritten before it has
/// been read, or an entry of the KV cache streamed before it is there: what an
/// op demands has happened before it by program order and waits for words
/// alone. The rings' own order is not made use of.
///
/// Nobody then disturbs what another one waits for, so that whatever can go on
/// stays able to: if one order plays to its end (simulate), every order does.
/// FailedPrecondition "FILE: slot S, phase P, layer L, step T: ...".
absl::Status proveOrder(const Network &network);

} // namespace grok::handovers
