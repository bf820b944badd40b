#!/bin/sh
# Installs svc on Linux and macOS, upgrades it, goes back, and removes it, without root; see docs/install.md.
#
# A version is unpacked next to the others and tried before a link is switched to it, in one step. So whatever ends this
# program, the link leads to a whole version, and the next run removes the files that were left behind.
set -eu
umask 022
# The script reads the messages of the tools, so they must be in English.
export LC_ALL=C

# The address of the releases, and the name and the content of an archive, as scripts/release/archive.mjs makes it.
releases=${SVC_RELEASES:-https://github.com/svc/server/releases}
sums=SHA256SUMS
archives='linux-amd64 linux-arm64 darwin-arm64'
oldest_glibc=2.28
archive_of() { printf 'svc-%s-%s.tar.gz\n' "$1" "$archive"; }
folder_of() { printf 'svc-%s\n' "$1"; }
program=bin/svc
node=lib/node

longest_wait_s=600

usage() {
  cat <<'END'
Usage: install.sh [options]

Installs svc, or upgrades it, for the user who runs this.

  --version V       this version, also when it is older than the installed one (default: the latest)
  --from PLACE      a folder, or the URL of one, that has the archives and their SHA256SUMS
  --prefix DIR      where to install (default: ~/.local)
  --config FILE     the settings, in which listen and device are added where they lack (default: ~/.config/svc/svc.json)
  --no-config       leave all settings alone
  --force           install the version anew that is installed
  --rollback        go back to the version before
  --uninstall       remove svc, but not its settings and data
  --purge           with --uninstall: remove these as well
  --help            print this

SVC_RELEASES names another host of releases, SVC_CONFIG other settings, SVC_DATA other data.
END
}

fail() {
  printf 'install: %s\n' "$1" >&2
  exit 1
}

say() { printf '%s\n' "$1"; }

# Prints progress, if stdout is a terminal.
progress() { [ ! -t 1 ] || say "$1"; }

has() { command -v "$1" >/dev/null 2>&1; }

# Prints a path, quoted for a shell.
quoted() {
  case $1 in
    *[!0-9A-Za-z/._+-]*) printf '%s\n' "$1" | awk -v quote="'" '{ gsub(quote, quote "\\" quote quote); print quote $0 quote }' ;;
    *) say "$1" ;;
  esac
}

first_line() { printf '%s\n' "$1" | awk 'NF { print; exit }'; }
last_line() { printf '%s\n' "$1" | awk 'NF { line = $0 } END { print line }'; }

# Ends with one line that says what could not be done, and why, according to the message of the tool.
fail_because() {
  case $2 in
    *'No space left'* | *'quota exceeded'* | *ENOSPC* | *EDQUOT*) fail "$home: no space is left there" ;;
    *'Read-only file system'* | *'Permission denied'* | *EROFS* | *EACCES*)
      fail "$home cannot be written; name another folder with --prefix"
      ;;
  esac
  fail "$1: $(first_line "$2")"
}

parse_arguments() {
  work='' fresh='' own_run='' has_turn=false
  action=install version='' from='' prefix='' config=${SVC_CONFIG:-} keeps_config=false force=false purge=false
  while [ $# -gt 0 ]; do
    case $1 in
      --version=* | --from=* | --prefix=* | --config=*)
        argument=$1
        shift
        set -- "${argument%%=*}" "${argument#*=}" "$@"
        ;;
    esac
    case $1 in
      --version | --from | --prefix | --config) [ -n "${2:-}" ] || fail "$1 needs a value; see --help" ;;
    esac
    case $1 in
      --version) version=${2#v} && shift ;;
      --from) from=$2 && shift ;;
      --prefix) prefix=$2 && shift ;;
      --config) config=$2 && shift ;;
      --no-config) keeps_config=true ;;
      --force) force=true ;;
      --rollback) action=rollback ;;
      --uninstall) action=uninstall ;;
      --purge) purge=true ;;
      -h | --help) usage && exit 0 ;;
      *) fail "unknown argument $1; see --help" ;;
    esac
    shift
  done
  [ -z "$version" ] || is_version "$version" || fail "--version must be a version, such as 1.2.3"
  [ "$purge" = false ] || [ "$action" = uninstall ] || fail '--purge goes with --uninstall'
}

# Sets the folders, all absolute.
find_folders() {
  [ -n "$prefix" ] || [ -n "${HOME:-}" ] || fail 'HOME is not set; name a folder with --prefix'
  prefix=$(absolute "${prefix:-$HOME/.local}")
  home=$prefix/lib/svc
  if [ -z "$config" ] && [ "$keeps_config" = false ]; then
    [ -n "${HOME:-}" ] || fail 'HOME is not set; name the settings with --config, or --no-config'
    config=${XDG_CONFIG_HOME:-$HOME/.config}/svc/svc.json
  fi
  [ -z "$config" ] || config=$(absolute "$config")
  [ "$purge" = false ] || [ -n "${HOME:-}" ] || fail 'HOME is not set, which says where data is'
  data=${SVC_DATA:-${XDG_STATE_HOME:-${HOME:-}/.local/state}/svc}
}

absolute() {
  case $1 in
    /) say / ;;
    /*) say "${1%/}" ;;
    *) say "$(pwd)/${1%/}" ;;
  esac
}

# Sets `archive` to the platform's name in the name of an archive, or ends with the reason why there is no archive.
find_platform() {
  case $(uname -m) in
    x86_64 | amd64) cpu=amd64 ;;
    arm64 | aarch64) cpu=arm64 ;;
    *) cpu=$(uname -m) ;;
  esac
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    MINGW* | MSYS* | CYGWIN*) fail 'on Windows, run install.ps1 in PowerShell' ;;
    *) os=$(uname -s) ;;
  esac
  # uname says amd64 in a shell under Rosetta.
  if [ "$os-$cpu" = darwin-amd64 ]; then
    [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" = 1 ] ||
      fail 'Macs with an Intel processor are not supported; the container image runs there: docs/container.md'
    cpu=arm64
  fi
  archive=$os-$cpu
  case " $archives " in
    *" $archive "*) ;;
    *) fail "there is no svc for $archive, only for $archives, and for Windows" ;;
  esac
  [ "$os" != linux ] || check_linux
}

check_linux() {
  [ "$(getconf LONG_BIT 2>/dev/null || say 64)" = 64 ] || fail 'this is a 32-bit system; svc needs one of 64 bits'
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null) ||
    fail "this system has no glibc, which svc needs; the container image runs here: docs/container.md"
  [ "$(order "${glibc#* }.0" "$oldest_glibc.0")" != older ] ||
    fail "this system has $glibc, and svc needs $oldest_glibc; the container image runs here: docs/container.md"
}

check_tools() {
  for tool in awk tar gzip mktemp readlink; do has "$tool" || fail "$tool is needed and not installed"; done
  has sha256sum || has shasum || has openssl || fail 'sha256sum, shasum or openssl is needed and not installed'
}

is_version() {
  case $1 in
    *[!0-9A-Za-z.-]*) return 1 ;;
    [0-9]*.[0-9]*.[0-9]*) return 0 ;;
    *) return 1 ;;
  esac
}

# The order of versions by semver.org: below(a, b) is true if a is the older version.
order_functions='
  function below_part(a, b, numeric) {
    if (a ~ /^[0-9]+$/ && b ~ /^[0-9]+$/) return a + 0 < b + 0
    if (a ~ /^[0-9]+$/) return 1
    if (b ~ /^[0-9]+$/) return 0
    return a "" < b ""
  }
  function below_list(a, b, x, y, n, m, i) {
    n = split(a, x, "."); m = split(b, y, ".")
    for (i = 1; i <= n && i <= m; i++) if (x[i] "" != y[i] "") return below_part(x[i], y[i])
    return n < m
  }
  function release(v) { sub(/-.*/, "", v); return v }
  function prerelease(v) { return v ~ /-/ ? substr(v, index(v, "-") + 1) : "" }
  function below(a, b) {
    if (release(a) != release(b)) return below_list(release(a), release(b))
    if (prerelease(a) == prerelease(b)) return 0
    if (prerelease(a) == "") return 0
    if (prerelease(b) == "") return 1
    return below_list(prerelease(a), prerelease(b))
  }'

# Prints whether version $1 is older than $2, newer, or the same.
order() {
  awk -v a="$1" -v b="$2" "$order_functions"'
    BEGIN { print below(a, b) ? "older" : below(b, a) ? "newer" : "same" }'
}

# --- One run at a time -----------------------------------------------------------------------------------------------

# Waits until no other run is at work. A run marks itself with a file whose name holds its process number and the start
# time of that process, and goes on if it sees no other run. Of two runs that see each other, the one with the higher
# number steps back. The file of a killed run belongs to no process, even if another process has got the same number.
take_turn() {
  standing=$home
  while [ ! -d "$standing" ]; do standing=$(dirname "$standing"); done
  own_run=$home/.run.$$.$(start_of $$)
  waited_s=0
  while :; do
    # Another run may be removing the folders that it has made, so the second try counts.
    mkdir -p "$home" 2>/dev/null || problem=$(mkdir -p "$home" 2>&1) || fail_because "$home cannot be made" "$problem"
    if ! problem=$( (: >"$own_run") 2>&1); then
      # Another run may have just removed everything.
      [ -d "$home" ] || continue
      fail_because "$home cannot be written" "$problem"
    fi
    other=$(other_run)
    [ -n "$other" ] || break
    [ "$other" -gt $$ ] || rm -f "$own_run"
    [ "$waited_s" -gt 0 ] || progress "waiting for another run (process $other)"
    [ "$waited_s" -lt "$longest_wait_s" ] || fail "another run (process $other) is at work in $home"
    waited_s=$((waited_s + 1))
    sleep 1
  done
  has_turn=true
  problem=$(mkdir -p "$home/versions" 2>&1) || fail_because "$home/versions cannot be made" "$problem"
}

# Prints the lowest process number of the other runs, and removes the files of runs that have ended.
other_run() {
  for file in "$home"/.run.*; do
    [ "$file" != "$own_run" ] || continue
    run=${file##*/.run.}
    process=${run%%.*}
    case $process in
      *[!0-9]* | "") continue ;;
    esac
    if is_alive "$process" "${run#*.}"; then say "$process"; else rm -f "$file"; fi
  done | sort -n | head -n 1
}

# Prints the start time of process $1 in a few letters and digits, or nothing if it does not exist or has ended.
start_of() {
  if [ -e /proc/self/stat ]; then
    # The name of the program stands in brackets before the state, and may contain anything.
    awk '{ sub(/^.*\) /, "") } $1 != "Z" && $1 != "X" { print $20 }' "/proc/$1/stat" 2>/dev/null || :
  else
    TZ=UTC0 ps -p "$1" -o stat= -o lstart= 2>/dev/null |
      awk '$1 !~ /^Z/ { $1 = ""; gsub(/[^0-9A-Za-z]+/, "-"); print }'
  fi
}

# Whether process $1 is the one that started at $2. If the start time is unknown, only the number counts.
is_alive() {
  [ "$(start_of "$1")" = "$2" ] || return 1
  [ -n "$2" ] || kill -0 "$1" 2>/dev/null
}

# Removes the files of this run, including a version to which it has not switched, and the folders that it has made and
# that are empty. A signal may come just after the switch, so that is checked.
clean_up() {
  [ -z "$fresh" ] || [ "$fresh" = "$home/$(target_of current)" ] || rm -rf "$fresh"
  [ -z "$work" ] || rm -rf "$work"
  # Without its turn, another run may have made this folder to fill it.
  [ "$has_turn" = false ] || rmdir "$home/versions" 2>/dev/null || true
  [ -z "$own_run" ] || remove_run
}

# Removes the mark of this run, and each folder that did not stand before the run and is empty.
remove_run() {
  rm -f "$own_run"
  innermost=$home
  while [ "$innermost" != "$standing" ] && { [ ! -d "$innermost" ] || rmdir "$innermost" 2>/dev/null; }; do
    innermost=$(dirname "$innermost")
  done
}

# --- Getting a release -----------------------------------------------------------------------------------------------

# Copies file $1 of the release to $2.
fetch() {
  case $place in
    http://* | https://*) download "$place/$1" "$2" ;;
    *)
      [ -f "$place/$1" ] || fail "$place has no $1"
      [ -r "$place/$1" ] || fail "$place/$1 cannot be read"
      problem=$(cp "$place/$1" "$2" 2>&1) || fail_because "$place/$1 cannot be copied" "$problem"
      ;;
  esac
}

# Loads URL $1 into the file $2. An https URL is never followed to plain http.
download() {
  url=$1 status=0 said=''
  if has curl; then
    code_of_full_disk=23
    load_with_curl "$2"
  elif has wget; then
    code_of_full_disk=3
    case $url in
      https:*) load_safely_with_wget "$2" ;;
      *) said=$(wget -q -T 60 -O "$2" "$url" 2>&1) || status=$? ;;
    esac
  else
    fail 'curl or wget is needed and not installed'
  fi
  case $status in
    0) ;;
    "$code_of_full_disk") fail "$home: no space is left there" ;;
    *) fail "$url cannot be had: $(last_line "${said:-error $status of the download}")" ;;
  esac
}

load_with_curl() {
  case $url in
    https:*) protocols='=https' ;;
    *) protocols='=http,https' ;;
  esac
  set -- curl --fail --location --proto "$protocols" --retry 3 --connect-timeout 20 --speed-limit 1 --speed-time 60 \
    --output "$1" "$url"
  if [ -t 2 ] && [ "${url##*/}" != "$sums" ]; then
    "$@" --progress-bar || status=$?
  else
    said=$("$@" --silent --show-error 2>&1) || status=$?
  fi
}

# By default, wget follows a redirect from https to http, so this follows the redirects one by one.
load_safely_with_wget() {
  case $(wget --version 2>/dev/null) in
    'GNU Wget '*) ;;
    *) fail 'curl or GNU Wget is needed for https and not installed' ;;
  esac
  step=$url
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    status=0
    headers=$(wget -q --server-response --max-redirect=0 -t 3 -T 60 -O "$1" "$step" 2>&1) || status=$?
    said=$(printf '%s\n' "$headers" | awk '/^ *HTTP\// { sub(/^ */, ""); line = $0 } END { print line }')
    next=$(printf '%s\n' "$headers" | awk '/^ *HTTP\// { code = $2 } tolower($1) == "location:" && code ~ /^3/ { print $2; exit }')
    case $next in
      '') return 0 ;;
      https://*) step=$next ;;
      //*) step=https:$next ;;
      /*) host=${step#https://} && step=https://${host%%/*}$next ;;
      *) said="it leads to $next, which is not https" && return 0 ;;
    esac
  done
}

# Sets `version`, if none was asked for, and `place`, the address of its archive.
find_release() {
  if [ -n "$from" ]; then
    place=${from#file://}
    place=${place%/}
  elif [ -n "$version" ]; then
    place=$releases/download/v$version
  else
    place=$releases/latest/download
  fi
  fetch "$sums" "$work/$sums"
  [ -n "$version" ] || version=$(newest_version)
  [ -n "$version" ] || fail "$sums of $place has no archive for $archive"
  # The place names the version, because a new release may become the latest meanwhile.
  [ -n "$from" ] || place=$releases/download/v$version
}

newest_version() {
  awk -v before='svc-' -v behind="-$archive.tar.gz" "$order_functions"'
    { sub(/\r$/, ""); name = $2; sub(/^\*/, "", name) }
    length(name) > length(before behind) && index(name, before) == 1 &&
      substr(name, length(name) - length(behind) + 1) == behind {
        found = substr(name, length(before) + 1, length(name) - length(before behind))
        if (found !~ /^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$/) next
        if (newest == "" || below(newest, found)) newest = found
    }
    END { print newest }' "$work/$sums"
}

# Fetches the archive $1, and ends unless its checksum is that of the list.
fetch_checked() {
  wanted=$(awk -v name="$1" '{ sub(/\r$/, "") } $2 == name || $2 == "*" name { print tolower($1) }' "$work/$sums")
  case $wanted in
    '') fail "$sums of $place has no line for $1" ;;
    *[!0-9a-f]*) fail "$sums of $place has no clear line for $1" ;;
  esac
  [ "${#wanted}" -eq 64 ] || fail "$sums of $place has no clear line for $1"
  progress "fetching $1"
  fetch "$1" "$work/$1"
  [ "$(sha256 "$work/$1")" = "$wanted" ] || fail "$1 is damaged or not what was released: its sha256 is not that of $sums"
}

sha256() {
  if has sha256sum; then
    sha256sum <"$1"
  elif has shasum; then
    shasum -a 256 <"$1"
  else
    openssl dgst -sha256 -r <"$1"
  fi | awk '{ print $1 }'
}

# Unpacks the archive $1, and sets `fresh` to its folder.
unpack() {
  mkdir "$work/unpacked"
  # With -o, the files belong to the user who runs this, even if that is root.
  problem=$(cd "$work/unpacked" && tar -xzof "../$1" 2>&1) || fail_because "$1 cannot be unpacked" "$problem"
  fresh=$work/unpacked/$(folder_of "$version")
  [ -x "$fresh/$program" ] && [ -x "$fresh/$node" ] || fail "$1 is no archive of svc $version: it has no $program"
}

# Ends unless the version in folder $1 starts here, has the right number, and decides. It reads no settings of the user.
try_out() {
  progress "trying svc $version"
  said=$(bare "$1/$program" --version) || fail "svc $version does not run here: $(last_line "$said")"
  [ "$said" = "$version" ] || fail "this is not svc $version: it says that it is $(last_line "$said")"
  said=$(bare "$1/$program" ask --device cpu --state 'A trial.' --question 'trial: Is this a trial?' --json) ||
    fail "svc $version cannot decide here: $(last_line "$said")"
}

# Runs a program without the user's environment and home folder.
bare() { (cd "$work" && env -i PATH="$PATH" HOME="$work" "$@" 2>&1); }

# --- What is installed -----------------------------------------------------------------------------------------------

# Prints the folder to which link $1 leads, such as versions/1.2.3, or nothing if there is no link.
target_of() { [ ! -h "$home/$1" ] || readlink "$home/$1"; }

# Prints the version in a folder; a number behind ~ distinguishes two folders of the same version.
version_in() {
  name=${1#versions/}
  say "${name%%~*}"
}

# Makes link $1 lead to $2, in one step. Node renames it, because mv and ln would follow the old link.
point() {
  ln -s "$2" "$work/link"
  problem=$(bare "$home/$2/$node" -e "$rename" "$work/link" "$home/$1") ||
    fail_because "$home/$1 cannot be changed" "$problem"
}

rename='
  try {
    require("fs").renameSync(process.argv[1], process.argv[2])
  } catch (error) {
    console.error(error.message)
    process.exit(1)
  }'

# Moves the fresh folder next to the other versions, and sets `fresh` and `target` to its new place.
keep() {
  target=versions/$version
  number=1
  while [ -e "$home/$target" ] || [ -h "$home/$target" ]; do
    number=$((number + 1))
    target=versions/$version~$number
  done
  problem=$(mv "$fresh" "$home/$target" 2>&1) || fail_because "$home/$target cannot be made" "$problem"
  fresh=$home/$target
}

add_settings() {
  [ "$keeps_config" = false ] || return 0
  folder=$(dirname "$config")
  mkdir -p "$folder" 2>/dev/null || fail "$folder cannot be made; name other settings with --config, or --no-config"
  said=$(bare "$1/$program" config add-missing "$config") || fail "$(last_line "$said")"
}

# Whether the command is the one installed here, even if its folder then had another name.
is_ours() {
  [ -h "$prefix/bin/svc" ] || return 1
  # shellcheck disable=SC3013 # -ef is now part of POSIX, and every shell already had it.
  [ "$(readlink "$prefix/bin/svc")" = "$home/current/$program" ] || [ "$prefix/bin/svc" -ef "$home/current/$program" ]
}

check_command() {
  [ ! -e "$prefix/bin/svc" ] && [ ! -h "$prefix/bin/svc" ] || is_ours ||
    fail "$prefix/bin/svc is not from this installer; move it away, or name another folder with --prefix"
}

# The link is absolute, because a relative one would lead elsewhere if bin is itself a link.
add_command() {
  is_ours || {
    problem=$(mkdir -p "$prefix/bin" 2>&1 && ln -s "$home/current/$program" "$prefix/bin/svc" 2>&1) ||
      fail_because "$prefix/bin/svc cannot be made" "$problem"
  }
}

# Removes all versions except the current one and the one before. A version that cannot be removed does no harm and
# stays.
remove_old() {
  kept=" $(target_of current) $(target_of previous) "
  for folder in "$home"/versions/*; do
    case $kept in
      *" versions/${folder##*/} "*) ;;
      *) rm -rf "$folder" 2>/dev/null || true ;;
    esac
  done
}

# --- What this program does ------------------------------------------------------------------------------------------

begin() {
  trap clean_up EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  take_turn
  rm -rf "$home"/.new.* 2>/dev/null || true
  remove_old
  made=$(mktemp -d "$home/.new.XXXXXX" 2>&1) || fail_because "$home cannot be written" "$made"
  work=$made
}

install_svc() {
  find_platform
  check_tools
  check_command
  begin
  old=$(target_of current)
  installed=$(version_in "$old")
  was_asked_for=$version
  find_release
  if [ "$installed" = "$version" ] && [ "$force" = false ]; then
    (try_out "$home/$old") 2>/dev/null || fail "svc $version is installed and does not run; install it anew with --force"
    add_settings "$home/$old"
    add_command
    say "svc $version is installed already, in $prefix"
    return 0
  fi
  if [ -n "$installed" ] && [ -z "$was_asked_for" ] && [ "$(order "$version" "$installed")" = older ]; then
    fail "svc $installed is installed, which is newer; for the older one say --version $version"
  fi
  fetch_checked "$(archive_of "$version")"
  unpack "$(archive_of "$version")"
  try_out "$fresh"
  keep
  add_settings "$fresh"
  [ -z "$old" ] || point previous "$old"
  point current "$target"
  add_command
  remove_old
  tell_next_steps
}

tell_next_steps() {
  place_of_it=
  [ "$prefix" = "${HOME:-}/.local" ] || place_of_it=" --prefix $(quoted "$prefix")"
  if [ -n "$old" ]; then
    say "svc $version is installed in $prefix, in place of $installed."
    say "  A server that runs is still $installed: restart it."
    say "  To go back:  sh $(quoted "$home/current/share/install.sh") --rollback$place_of_it"
    return 0
  fi
  say "svc $version is installed in $prefix."
  case ":$PATH:" in
    *":$prefix/bin:"*) command=svc ;;
    *) command=$(quoted "$prefix/bin/svc") ;;
  esac
  settings=
  [ -z "$config" ] || settings=" --config $(quoted "$config")"
  say "  start it:      $command serve$settings"
  say "  look it over:  $command doctor$settings"
  [ "$command" = svc ] || say "  find it:       export PATH=$(quoted "$prefix/bin"):\"\$PATH\", in the profile of your shell"
}

roll_back() {
  check_installed
  begin
  now=$(target_of current)
  before=$(target_of previous)
  [ -n "$before" ] && [ "$before" != "$now" ] && [ -d "$home/$before" ] || fail "no version before this one is kept in $home"
  version=$(version_in "$before")
  try_out "$home/$before"
  point current "$before"
  [ -z "$now" ] || point previous "$now"
  add_command
  say "svc $version is back, in place of $(version_in "$now"). A server that runs goes on as it is: restart it."
}

check_installed() { [ -h "$home/current" ] || fail "svc is not installed in $prefix"; }

uninstall() {
  if [ -d "$home" ]; then
    begin
    if is_ours; then
      problem=$(rm "$prefix/bin/svc" 2>&1) || fail_because "$prefix/bin/svc cannot be removed" "$problem"
    fi
    # This also removes the mark of this run, so its turn ends here.
    has_turn=false
    problem=$(rm -rf "$home/current" "$home/previous" "$home/versions" "$work" "$own_run" 2>&1) ||
      fail_because "$home cannot be removed" "$problem"
    rmdir "$home" 2>/dev/null || true
    say "svc is removed from $prefix."
  else
    say "svc is not installed in $prefix."
  fi
  if [ "$purge" = true ]; then
    purge_user_files
  elif [ -n "$config" ] && [ -e "$config" ]; then
    say "  The settings stay: $config"
  fi
}

# A model that the server fetched has its sha256 as its name; other models in the folder are the user's own.
purge_models() {
  for entry in "$1"/* "$1"/.fetch-* "$1"/.gone-*; do
    name=${entry##*/}
    case $name in
      sources | .fetch-* | .gone-*) ;;
      *[!0-9a-f]*) continue ;;
      *) [ ${#name} -eq 64 ] || continue ;;
    esac
    rm -rf "$entry"
  done
  rmdir "$1" 2>/dev/null || true
}

# Removes only files that svc made, or reads by these names, because the folders may hold other files.
purge_user_files() {
  [ -z "$config" ] || {
    folder=$(dirname "$config")
    rm -f "$config" "$folder/svc.api-key" "$folder/svc.password"
    rmdir "$folder" 2>/dev/null || true
  }
  rm -f "$data/svc.api-key" "$data/svc.password"
  for folder in "$data" "${XDG_CACHE_HOME:-${HOME:-}/.cache}/svc" "${HOME:-}/Library/Caches/svc"; do
    purge_models "$folder/models"
    rmdir "$folder" 2>/dev/null || true
  done
  say "  Settings and data are removed as well."
}

main() {
  parse_arguments "$@"
  find_folders
  case $action in
    install) install_svc ;;
    rollback) roll_back ;;
    uninstall) uninstall ;;
  esac
}

# The braces make the shell read the whole script before it runs anything, even through a pipe that breaks.
{ main "$@"; }
