#pragma once
// Includes all public headers.
#include "roofcast/error.h"
#include "roofcast/estimate.h"
#include "roofcast/plan.h"
#include "roofcast/result.h"
#include "roofcast/scenario.h"
#include "roofcast/simulate.h"
#include "roofcast/units.h"
#include "roofcast/version.h"
