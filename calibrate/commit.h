#pragma once

namespace roofcast::calibrate {

/// The commit that this program was built from, with "-dirty" if files were changed; "unknown" outside git.
extern const char* const kCommit;

}  // namespace roofcast::calibrate
