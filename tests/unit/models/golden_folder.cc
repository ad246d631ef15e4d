#include "tests/unit/models/golden_folder.h"

namespace rumor::models {

const char* const golden_folder = GOLDEN_FOLDER;

}  // namespace rumor::models
