// A precompiled header needs a target with a source (Pragma.cmake).
