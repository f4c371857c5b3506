/* The version of the build engine: part of every key of its caches. */
#ifndef BUILDER_ENGINE_H
#define BUILDER_ENGINE_H

/* Raise it when the same inputs give another image, or an unpacked list means something else. */
#define ENGINE_VERSION "svrun-build/2"

#endif
