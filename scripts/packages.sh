# Sourced by the other scripts. need_packages WHAT...: installs the packages of packages.txt marked with one of these
# words that are missing, and says so.

need_packages() {
  local list missing="" what package
  list="$(dirname "${BASH_SOURCE[0]}")/packages.txt"
  if ! command -v dpkg-query >/dev/null; then
    echo "This script installs Debian packages; here is no dpkg. Install by hand what $list names, then run cmake --preset release." >&2
    return 2
  fi
  while read -r what package; do
    case " $* " in *" $what "*) ;; *) continue ;; esac
    [ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" = "install ok installed" ] || missing="$missing $package"
  done < <(grep -v '^#' "$list")
  [ -n "$missing" ] || return 0
  echo "== installing Debian packages:$missing"
  local as_root=""
  [ "$(id -u)" = 0 ] || as_root="sudo"
  $as_root apt-get update -qq &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null || {
    echo "The packages could not be installed (see above). As root: apt-get install$missing" >&2
    return 2
  }
}
