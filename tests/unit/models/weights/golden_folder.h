// Where the golden files of this folder are.
#pragma once

namespace rumor::models {

extern const char* const golden_folder;

}  // namespace rumor::models
