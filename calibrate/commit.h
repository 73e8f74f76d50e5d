#pragma once

namespace roofcast::calibrate {

/// The commit that this program was built from, "-dirty" behind it where files had changed; "unknown" outside git.
extern const char* const kCommit;

}  // namespace roofcast::calibrate
