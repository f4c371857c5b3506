#!/bin/sh
# speech: text to a WAV file with flite, a WAV file to text with PocketSphinx.
set -eu

usage='usage: speech say TEXT...    a WAV file on standard output
       speech hear          the words in the WAV file on standard input'

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

case ${1-} in
say)
	shift
	[ "$#" -gt 0 ] || { echo "speech: nothing to say" >&2; echo "$usage" >&2; exit 2; }
	flite -voice rms -t "$*" -o "$tmp/out.wav"
	cat "$tmp/out.wav"
	;;
hear)
	cat >"$tmp/in.wav"
	[ "$(head -c 4 "$tmp/in.wav")" = RIFF ] || { echo "speech: no WAV file on standard input" >&2; exit 1; }
	# What the acoustic model was trained on: 16 kHz, one channel.
	sox "$tmp/in.wav" -r 16000 -c 1 -b 16 "$tmp/16k.wav"
	pocketsphinx_continuous -infile "$tmp/16k.wav" -logfn /dev/null
	;;
--help)
	echo "$usage"
	;;
*)
	echo "$usage" >&2
	exit 2
	;;
esac
