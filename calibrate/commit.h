#pragma once

namespace roofcast {

/// The commit that this program was built from, "-dirty" behind it where files had changed; "unknown" outside git.
extern const char* const kCommit;

}  // namespace roofcast
