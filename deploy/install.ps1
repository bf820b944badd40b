<#
.SYNOPSIS
Installs svc on Windows, upgrades it, goes back, and removes it, for the user who runs this: docs/install.md.

.DESCRIPTION
A version is unpacked beside the others and tried before the file "current" names it, in one step. So whatever ends this
script, that file names a whole version, and the next run clears what was left behind.

SVC_RELEASES names another host of releases, SVC_CONFIG other settings, SVC_DATA other data.

.PARAMETER Version
This version, also when it is older than the installed one. The default is the latest.

.PARAMETER From
A folder, or the URL of one, that has the archives and their SHA256SUMS.

.PARAMETER Prefix
Where to install. The default is Programs\svc in the local application data of the user.

.PARAMETER Config
The settings, in which listen and device are added where they lack. The default is svc\svc.json in the application data.

.PARAMETER NoConfig
Leave all settings alone.

.PARAMETER Force
Install the version anew that is installed.

.PARAMETER Rollback
Go back to the version before.

.PARAMETER Uninstall
Remove svc, but not its settings and data.

.PARAMETER Purge
With -Uninstall: remove these as well.
#>
[CmdletBinding()]
param(
    [string] $Version = '',
    [string] $From = '',
    [string] $Prefix = '',
    [string] $Config = '',
    [switch] $NoConfig,
    [switch] $Force,
    [switch] $Rollback,
    [switch] $Uninstall,
    [switch] $Purge
)

Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
# Windows PowerShell draws its progress bar so often that a download would take many times as long.
$ProgressPreference = 'SilentlyContinue'

# The address of the releases, and the name and the content of an archive, as scripts/release/archive.mjs makes it.
$Releases = 'https://github.com/svc/server/releases'
if ($env:SVC_RELEASES) { $Releases = $env:SVC_RELEASES }
$Sums = 'SHA256SUMS'
$Platform = 'windows-amd64'
$Node = 'lib\node.exe'
$Program = 'lib\node_modules\@svc\server\bin\svc.js'
$Launcher = 'bin\svc.cmd'

$LongestWaitSeconds = 600
$VersionPattern = '[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?'

# The command that people type. It never changes, so no run has to replace it while it is in use.
$Command = @'
@echo off
setlocal
set /p chosen=<"%~dp0..\current"
"%~dp0..\versions\%chosen%\bin\svc.cmd" %*
'@

function Write-Line([string] $Text) { [Console]::Out.WriteLine($Text) }

# Prints progress, unless the output is redirected.
function Write-Step([string] $Text) { if (-not [Console]::IsOutputRedirected) { Write-Line $Text } }

function Assert-Platform {
    if (-not [Environment]::Is64BitOperatingSystem) { throw 'this is a 32-bit system; svc needs one of 64 bits' }
    $cpu = $env:PROCESSOR_ARCHITECTURE
    # In a 32-bit PowerShell on a 64-bit system, the first variable describes PowerShell and not the system.
    if ($env:PROCESSOR_ARCHITEW6432) { $cpu = $env:PROCESSOR_ARCHITEW6432 }
    if ($cpu -ne 'AMD64') { throw "there is no svc for Windows on $cpu, only for $Platform" }
}

function Assert-Arguments {
    if ($Version -and $Version -notmatch "^$VersionPattern`$") { throw '-Version must be a version, such as 1.2.3' }
    if ($Purge -and -not $Uninstall) { throw '-Purge goes with -Uninstall' }
    if ($Rollback -and $Uninstall) { throw '-Rollback and -Uninstall do not go together' }
}

# --- The order of versions, as semver.org has it ---------------------------------------------------------------------

function Compare-Part([string] $A, [string] $B) {
    $aIsNumber = $A -match '^[0-9]+$'
    $bIsNumber = $B -match '^[0-9]+$'
    if ($aIsNumber -and $bIsNumber) { return ([decimal] $A).CompareTo([decimal] $B) }
    if ($aIsNumber) { return -1 }
    if ($bIsNumber) { return 1 }
    return [string]::CompareOrdinal($A, $B)
}

function Compare-List([string] $A, [string] $B) {
    $as = $A.Split('.')
    $bs = $B.Split('.')
    for ($i = 0; $i -lt [Math]::Min($as.Length, $bs.Length); $i++) {
        $order = Compare-Part $as[$i] $bs[$i]
        if ($order -ne 0) { return $order }
    }
    return $as.Length.CompareTo($bs.Length)
}

# Returns a number below zero if version A is older than B.
function Compare-Version([string] $A, [string] $B) {
    $aRelease, $aPrerelease = $A.Split([char[]] '-', 2)
    $bRelease, $bPrerelease = $B.Split([char[]] '-', 2)
    $order = Compare-List $aRelease $bRelease
    if ($order -ne 0) { return $order }
    if (-not $aPrerelease -and -not $bPrerelease) { return 0 }
    if (-not $aPrerelease) { return 1 }
    if (-not $bPrerelease) { return -1 }
    return Compare-List $aPrerelease $bPrerelease
}

# --- One run at a time -----------------------------------------------------------------------------------------------

# Returns an open file that no other process can open; the system closes it, whatever ends this process.
function Enter-Turn {
    $path = Join-Path $Prefix '.lock'
    for ($waited = 0; ; $waited++) {
        # Another run may have removed the folder together with everything else.
        New-Folder (Join-Path $Prefix 'versions')
        try {
            return New-Object IO.FileStream($path, [IO.FileMode]::OpenOrCreate, [IO.FileAccess]::ReadWrite,
                [IO.FileShare]::None, 1, [IO.FileOptions]::DeleteOnClose)
        } catch {
            $cause = $_.Exception.GetBaseException()
            # For a moment, a file that is being removed cannot be opened either.
            if ($cause -is [UnauthorizedAccessException] -and $waited -ge 3) {
                throw "$Prefix cannot be written; name another folder with -Prefix"
            }
            if ($waited -ge $LongestWaitSeconds) { throw "another run is at work in $Prefix" }
            if ($waited -eq 0) { Write-Step 'waiting for another run' }
        }
        Start-Sleep -Seconds 1
    }
}

function New-Folder([string] $Path) {
    try {
        [void] [IO.Directory]::CreateDirectory($Path)
    } catch {
        throw "$Path cannot be made; name another folder: $($_.Exception.GetBaseException().Message)"
    }
}

# Tries an action again until it succeeds, because a file that is open for a moment can hinder it, for example one that
# a virus scanner reads.
function Invoke-Patiently([scriptblock] $Action, [string] $Problem) {
    for ($try = 1; ; $try++) {
        try {
            & $Action
            return
        } catch {
            if ($try -ge 100) { throw "${Problem}: $($_.Exception.GetBaseException().Message)" }
            Start-Sleep -Milliseconds 100
        }
    }
}

function Move-Folder([string] $Source, [string] $Target, [string] $Problem) {
    Invoke-Patiently { [IO.Directory]::Move($Source, $Target) } $Problem
}

# --- Getting a release -----------------------------------------------------------------------------------------------

# Copies a file of the release into the work folder, and returns its path there.
function Get-ReleaseFile([string] $Place, [string] $Name) {
    $path = Join-Path $script:Work $Name
    if ($Place -match '^https?://') {
        try { Receive-File "$Place/$Name" $path }
        catch { throw "$Place/$Name cannot be had: $($_.Exception.GetBaseException().Message)" }
    } else {
        $source = Join-Path $Place $Name
        if (-not (Test-Path -LiteralPath $source -PathType Leaf)) { throw "$Place has no $Name" }
        Copy-Item -LiteralPath $source -Destination $path
    }
    return $path
}

# Loads a URL into a file. By default, Windows PowerShell follows a redirect from https to http, so this follows the
# redirects one by one.
function Receive-File([uri] $Url, [string] $Path) {
    $next = $Url
    for ($step = 1; $step -le 10; $step++) {
        $request = [Net.WebRequest]::Create($next)
        $request.AllowAutoRedirect = $false
        $request.UserAgent = 'install.ps1'
        $request.Timeout = 60000
        $request.ReadWriteTimeout = 60000
        $response = $request.GetResponse()
        try {
            if ([int] $response.StatusCode -lt 300) {
                Save-Stream ($response.GetResponseStream()) $Path
                return
            }
            $next = New-Object Uri -ArgumentList $next, ($response.Headers['Location'])
        } finally {
            $response.Close()
        }
        if ($Url.Scheme -eq 'https' -and $next.Scheme -ne 'https') { throw "it leads to $next, which is not https" }
    }
    throw 'it leads from one address to the next, without end'
}

function Save-Stream([IO.Stream] $Stream, [string] $Path) {
    $file = [IO.File]::Create($Path)
    try { $Stream.CopyTo($file) }
    finally { $file.Dispose() }
}

# Returns the version, which is the newest if none was asked for, the place of its archive, and the lines of checksums.
function Find-Release {
    $place = if ($From -match '^file:') { ([uri] $From).LocalPath.TrimEnd('\') }
    elseif ($From) { $From.TrimEnd('/', '\') }
    elseif ($Version) { "$Releases/download/v$Version" }
    else { "$Releases/latest/download" }
    $lines = @(Get-Content -LiteralPath (Get-ReleaseFile $place $Sums))
    $found = $Version
    if (-not $found) { $found = Select-Newest $lines }
    if (-not $found) { throw "$Sums of $place has no archive for $Platform" }
    # The place names the version, because a new release may become the latest meanwhile.
    if (-not $From) { $place = "$Releases/download/v$found" }
    return @{ Version = $found; Place = $place; Lines = $lines }
}

function Select-Newest([string[]] $Lines) {
    $newest = ''
    foreach ($line in $Lines) {
        if ($line -notmatch "^\S+ [ *]svc-($VersionPattern)-$Platform\.zip`$") { continue }
        $found = $Matches[1]
        if (-not $newest -or (Compare-Version $newest $found) -lt 0) { $newest = $found }
    }
    return $newest
}

# Fetches the archive, and returns its path if its checksum is that of the list.
function Get-CheckedArchive($Release) {
    $name = "svc-$($Release.Version)-$Platform.zip"
    $matching = @($Release.Lines | Where-Object { $_ -match "^\S+ [ *]$([regex]::Escape($name))`$" })
    if ($matching.Count -eq 0) { throw "$Sums of $($Release.Place) has no line for $name" }
    if ($matching.Count -ne 1 -or $matching[0] -notmatch '^([0-9a-fA-F]{64}) ') {
        throw "$Sums of $($Release.Place) has no clear line for $name"
    }
    $wanted = $Matches[1]
    Write-Step "fetching $name"
    $path = Get-ReleaseFile $Release.Place $name
    if ((Get-FileHash -LiteralPath $path -Algorithm SHA256).Hash -ne $wanted) {
        throw "$name is damaged or not what was released: its sha256 is not that of $Sums"
    }
    return $path
}

# Unpacks the archive next to itself, and returns the folder that it holds.
function Expand-Release([string] $Archive, [string] $Wanted) {
    Add-Type -AssemblyName System.IO.Compression.FileSystem
    $folder = Join-Path $script:Work 'unpacked'
    [IO.Compression.ZipFile]::ExtractToDirectory($Archive, $folder)
    $fresh = Join-Path $folder "svc-$Wanted"
    foreach ($file in $Launcher, $Node, $Program) {
        if (-not (Test-Path -LiteralPath (Join-Path $fresh $file) -PathType Leaf)) {
            throw "$(Split-Path -Leaf $Archive) is no archive of svc ${Wanted}: it has no $file"
        }
    }
    return $fresh
}

# --- Running a version -----------------------------------------------------------------------------------------------

# Runs svc of a folder to its end, without the user's settings and variables.
function Invoke-Svc([string] $Folder, [string[]] $Arguments) {
    $start = New-Object Diagnostics.ProcessStartInfo
    $start.FileName = Join-Path $Folder $Node
    # No argument contains a quotation mark or ends with a backslash.
    $start.Arguments = (@(Join-Path $Folder $Program) + $Arguments | ForEach-Object { "`"$_`"" }) -join ' '
    $start.WorkingDirectory = $script:Work
    $start.UseShellExecute = $false
    $start.CreateNoWindow = $true
    $start.RedirectStandardOutput = $true
    $start.RedirectStandardError = $true
    foreach ($name in @($start.EnvironmentVariables.Keys)) {
        if ($name -like 'SVC_*' -or $name -like 'NODE_*') { $start.EnvironmentVariables.Remove($name) }
    }
    $process = [Diagnostics.Process]::Start($start)
    # Both pipes are read at once, because a process waits for the reader of a full pipe.
    $output = $process.StandardOutput.ReadToEndAsync()
    $errors = $process.StandardError.ReadToEndAsync()
    $process.WaitForExit()
    return @{ Code = $process.ExitCode; Output = $output.Result.Trim(); Error = $errors.Result.Trim() }
}

function Get-LastLine([string] $Text) { return @($Text -split "`r?`n")[-1] }

# Throws unless the version starts here, has the right number, and decides.
function Assert-Works([string] $Folder, [string] $Wanted) {
    Write-Step "trying svc $Wanted"
    $said = Invoke-Svc $Folder @('--version')
    if ($said.Code -ne 0) { throw "svc $Wanted does not run here: $(Get-LastLine $said.Error)" }
    if ($said.Output -ne $Wanted) { throw "this is not svc ${Wanted}: it says that it is $(Get-LastLine $said.Output)" }
    $ask = @('ask', '--device', 'cpu', '--state', 'A trial.', '--question', 'trial: Is this a trial?', '--json')
    $said = Invoke-Svc $Folder $ask
    if ($said.Code -ne 0) { throw "svc $Wanted cannot decide here: $(Get-LastLine $said.Error)" }
}

function Add-Settings([string] $Folder) {
    if ($NoConfig) { return }
    New-Folder (Split-Path -Parent $Config)
    $said = Invoke-Svc $Folder @('config', 'add-missing', $Config)
    if ($said.Code -ne 0) { throw (Get-LastLine $said.Error) }
}

# --- What is installed -----------------------------------------------------------------------------------------------

# Returns the folder that the file "current" or "previous" names, or an empty text if there is no such file.
function Get-Chosen([string] $Name) {
    $path = Join-Path $Prefix $Name
    if (Test-Path -LiteralPath $path -PathType Leaf) { return [IO.File]::ReadAllText($path).Trim() }
    return ''
}

# Makes the file name a folder, in one step.
function Set-Chosen([string] $Name, [string] $Folder) {
    $path = Join-Path $Prefix $Name
    $temporary = Join-Path $script:Work $Name
    [IO.File]::WriteAllText($temporary, "$Folder`r`n", [Text.Encoding]::ASCII)
    # A starting svc has the file open for a moment.
    Invoke-Patiently {
        if (Test-Path -LiteralPath $path) { [IO.File]::Replace($temporary, $path, [NullString]::Value) }
        else { [IO.File]::Move($temporary, $path) }
    } "$path cannot be changed"
}

# Returns the version in a folder; a number behind ~ distinguishes two folders of the same version.
function Get-VersionIn([string] $Folder) { return $Folder.Split('~')[0] }

# Moves the fresh folder next to the other versions, and returns its name there.
function Save-Version([string] $Fresh, [string] $Wanted) {
    $name = $Wanted
    for ($number = 2; Test-Path -LiteralPath (Join-Path $Prefix "versions\$name"); $number++) { $name = "$Wanted~$number" }
    $target = Join-Path $Prefix "versions\$name"
    Move-Folder $Fresh $target "$target cannot be made"
    return $name
}

# Removes the remains of ended runs, and all versions except the current one and the one before. A version that still
# runs cannot be moved, and stays.
function Remove-Old {
    $kept = @((Get-Chosen 'current'), (Get-Chosen 'previous'))
    $versions = @(Get-ChildItem -LiteralPath (Join-Path $Prefix 'versions') -Directory)
    foreach ($folder in $versions | Where-Object { $kept -notcontains $_.Name }) {
        try { [IO.Directory]::Move($folder.FullName, (Join-Path $Prefix ".new.$($folder.Name).$PID")) } catch { continue }
    }
    Remove-Leftover
}

# Returns the work folders of runs, including those that were ended.
function Get-Leftover {
    if (Test-Path -LiteralPath $Prefix) { Get-ChildItem -LiteralPath $Prefix -Directory -Filter '.new.*' -Force }
}

function Remove-Leftover {
    Get-Leftover | Where-Object { $_.Name -ne (Split-Path -Leaf $script:Work) } |
        Remove-Item -Recurse -Force -ErrorAction SilentlyContinue
}

function Add-Command {
    $path = Join-Path $Prefix 'bin\svc.cmd'
    if (Test-Path -LiteralPath $path) { return }
    New-Folder (Split-Path -Parent $path)
    $temporary = Join-Path $script:Work 'svc.cmd'
    [IO.File]::WriteAllText($temporary, ($Command -replace "`r?`n", "`r`n") + "`r`n", [Text.Encoding]::ASCII)
    [IO.File]::Move($temporary, $path)
}

# --- What this script does -------------------------------------------------------------------------------------------

function Install-Svc {
    Remove-Old
    $old = Get-Chosen 'current'
    $installed = Get-VersionIn $old
    $release = Find-Release
    $wanted = $release.Version
    if ($installed -eq $wanted -and -not $Force) {
        try { Assert-Works (Join-Path $Prefix "versions\$old") $wanted }
        catch { throw "svc $wanted is installed and does not run; install it anew with -Force" }
        Add-Settings (Join-Path $Prefix "versions\$old")
        Add-Command
        Write-Line "svc $wanted is installed already, in $Prefix"
        return
    }
    if ($installed -and -not $Version -and (Compare-Version $wanted $installed) -lt 0) {
        throw "svc $installed is installed, which is newer; for the older one say -Version $wanted"
    }
    $fresh = Expand-Release (Get-CheckedArchive $release) $wanted
    Assert-Works $fresh $wanted
    Add-Settings $fresh
    $name = Save-Version $fresh $wanted
    if ($old) { Set-Chosen 'previous' $old }
    Set-Chosen 'current' $name
    Add-Command
    Remove-Old
    Write-NextSteps $wanted $installed
}

function Write-NextSteps([string] $Wanted, [string] $Installed) {
    if ($Installed) {
        Write-Line "svc $Wanted is installed in $Prefix, in place of $Installed."
        Write-Line "  A server that runs is still ${Installed}: restart it. To go back, run this script with -Rollback."
        return
    }
    $svc = Join-Path $Prefix 'bin\svc.cmd'
    $settings = if ($NoConfig) { '' } else { " --config `"$Config`"" }
    Write-Line "svc $Wanted is installed in $Prefix."
    Write-Line "  start it:      & `"$svc`" serve$settings"
    Write-Line "  look it over:  & `"$svc`" doctor$settings"
}

function Undo-Svc {
    $now = Get-Chosen 'current'
    $before = Get-Chosen 'previous'
    $folder = Join-Path $Prefix "versions\$before"
    if (-not $before -or $before -eq $now -or -not (Test-Path -LiteralPath $folder -PathType Container)) {
        throw "no version before this one is kept in $Prefix"
    }
    Assert-Works $folder (Get-VersionIn $before)
    Set-Chosen 'current' $before
    Set-Chosen 'previous' $now
    Add-Command
    Write-Line "svc $(Get-VersionIn $before) is back, in place of $(Get-VersionIn $now). A server that runs goes on as it is: restart it."
}

function Uninstall-Svc {
    # A running version cannot be removed; this move shows that before anything is removed.
    $away = Join-Path $script:Work 'versions'
    Move-Folder (Join-Path $Prefix 'versions') $away 'svc cannot be removed while it runs, stop it first'
    Remove-Leftover
    # The versions are removed last: as long as they exist, another run sees that something is left to remove.
    foreach ($path in (Join-Path $Prefix 'bin\svc.cmd'), (Join-Path $Prefix 'current'), (Join-Path $Prefix 'previous'), $away) {
        Invoke-Patiently {
            if (Test-Path -LiteralPath $path) { Remove-Item -LiteralPath $path -Recurse -Force }
        } "$path cannot be removed"
    }
    Remove-EmptyFolder (Join-Path $Prefix 'bin')
    Write-Line "svc is removed from $Prefix."
    if (-not $Purge -and (Test-Path -LiteralPath $Config)) { Write-Line "  The settings stay: $Config" }
}

# Removes only files that svc made, or reads by these names, because the folders may hold other files.
function Remove-UserFiles {
    $folder = Split-Path -Parent $Config
    $data = if ($env:SVC_DATA) { $env:SVC_DATA } else { Join-Path $env:LOCALAPPDATA 'svc' }
    $files = @($Config, "$folder\svc.api-key", "$folder\svc.password", "$data\svc.api-key", "$data\svc.password")
    # A model that the server fetched has its sha256 as its name; other models in the folder are the user's own.
    $files += @(Get-ChildItem -LiteralPath "$data\models" -Force -ErrorAction SilentlyContinue |
        Where-Object { $_.Name -match '^([0-9a-f]{64}|sources|\.(fetch|gone)-.*)$' } | ForEach-Object { $_.FullName })
    foreach ($path in $files | Where-Object { Test-Path -LiteralPath $_ }) { Remove-Item -LiteralPath $path -Recurse -Force }
    Remove-EmptyFolder "$data\models"
    Remove-EmptyFolder $folder
    Remove-EmptyFolder $data
    Write-Line '  Settings and data are removed as well.'
}

function Remove-EmptyFolder([string] $Path) {
    if ((Test-Path -LiteralPath $Path) -and -not (Get-ChildItem -LiteralPath $Path -Force)) { Remove-Item -LiteralPath $Path }
}

# Runs an action while no other run is at work, and removes its work folder.
function Invoke-Alone([scriptblock] $Action) {
    $turn = Enter-Turn
    try {
        $script:Work = Join-Path $Prefix ".new.$PID"
        if (Test-Path -LiteralPath $script:Work) { Remove-Item -LiteralPath $script:Work -Recurse -Force }
        New-Folder $script:Work
        try { & $Action }
        finally { Remove-Item -LiteralPath $script:Work -Recurse -Force -ErrorAction SilentlyContinue }
    } finally {
        $turn.Dispose()
    }
}

try {
    Assert-Arguments
    if (-not $Prefix) { $Prefix = Join-Path $env:LOCALAPPDATA 'Programs\svc' }
    if (-not $Config -and $env:SVC_CONFIG) { $Config = $env:SVC_CONFIG }
    if (-not $Config) { $Config = Join-Path $env:APPDATA 'svc\svc.json' }
    # .NET and PowerShell resolve relative paths from different folders.
    $Prefix = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Prefix).TrimEnd('\')
    $Config = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Config)
    # By default, Windows PowerShell offers only an older TLS.
    [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
    if ($Uninstall) {
        # A removal that was ended may have moved the versions into its work folder.
        if ((Test-Path -LiteralPath (Join-Path $Prefix 'versions')) -or (Get-Leftover)) { Invoke-Alone { Uninstall-Svc } }
        else { Write-Line "svc is not installed in $Prefix." }
        Remove-EmptyFolder $Prefix
        if ($Purge) { Remove-UserFiles }
    } elseif ($Rollback) {
        if (-not (Get-Chosen 'current')) { throw "svc is not installed in $Prefix" }
        Invoke-Alone { Undo-Svc }
    } else {
        Assert-Platform
        Invoke-Alone { Install-Svc }
    }
} catch {
    [Console]::Error.WriteLine("install: $($_.Exception.Message)")
    exit 1
}
