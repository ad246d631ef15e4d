#include "tests/unit/models/weights/golden_folder.h"

namespace rumor::models {

const char* const golden_folder = GOLDEN_FOLDER;

}  // namespace rumor::models
