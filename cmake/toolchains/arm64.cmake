# Cross-builds for 64-bit ARM (the Spark machines) on Debian 12, with that architecture's libraries beside our own:
#   dpkg --add-architecture arm64 && apt-get update
#   apt-get install g++-aarch64-linux-gnu qemu-user libssl-dev:arm64 libsqlite3-dev:arm64 libfmt-dev:arm64 \
#     libpcre2-dev:arm64 libtomlplusplus-dev:arm64 libgtest-dev:arm64
#   cmake --preset release -B build/arm64 --toolchain cmake/toolchains/arm64.cmake
# Its unit tests run under qemu-aarch64, but for those that fork.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
