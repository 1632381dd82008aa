// Which Python serves the reference. find_python() (reference/reference.hpp) proves each candidate by importing Torch, which
// takes a second; these let the reference process itself be the proof, so that a start costs one import, not two.
#pragma once

#include "reference/reference.hpp"

namespace pragma {

/// The Python that was chosen before in this process, else the first candidate where a module named torch can be found: a
/// guess, whose `torch` is empty because nothing was imported. `executable` is empty when there is none.
python_info likely_python();
/// What to tell who has a virtual environment (or conda's) active in which no Torch is, so that `chosen` is another Python: one sentence, else empty.
std::string passed_over(const python_info& chosen);
/// What to tell who has a Torch without bytecode beside its files (an image that was made without, a folder that nobody may write to): one sentence, else empty.
std::string uncompiled(const python_info& python);
/// Folders that this Python reads its modules and libraries from, $LD_LIBRARY_PATH among them: for a sandbox. Asked once.
std::vector<std::filesystem::path> python_folders(const std::string& executable);
/// Makes a guess that worked the answer of find_python() and likely_python().
void remember_python(const python_info& info);

} // namespace pragma
