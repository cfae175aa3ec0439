// What each tool does before anything else.
#pragma once

namespace grok {

/// Makes the standard descriptors valid, a file that is too large an error, and
/// an end by a signal or for want of memory one without temporaries.
void prepareProcess();

} // namespace grok
