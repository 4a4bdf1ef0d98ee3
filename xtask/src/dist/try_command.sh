# Tries an installed command in an empty folder: the whole path on made-up data, its manual and completions.
set -eu

potluck --version
prefix=$(dirname "$(dirname "$(command -v potluck)")")

potluck demo --out demo --rows 5000 > demo.txt
grep --quiet 'smoker=yes' demo.txt
potluck verify demo/public.parquet
potluck fit demo/public.parquet --label pressure --out model.json --report report.html > fit.txt
grep --quiet '95% interval' fit.txt
printf 'id,age,bmi,salt,exercise,smoker\n1,40,25,8,3,no\n' > new.csv
test "$(potluck predict model.json --data new.csv --id id | wc -l)" -eq 2

# A release of one's own, charged once and repeated with the same bytes.
potluck ledger init --ledger ledger --budget all --epsilon 2 --delta 1e-5
for out in first second; do
  potluck release demo/study.toml --party north --data demo/private/north.csv --ledger ledger --yes \
    --accept-low-accuracy --out "$out.parquet"
done
cmp first.parquet second.parquet

# A hub starts, answers and stops.
potluck hub serve --data hub --listen 127.0.0.1:0 --json > hub.txt 2> hub.log &
hub=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
  grep --quiet listening hub.txt && break
  sleep 1
done
grep --quiet listening hub.txt
kill -TERM "$hub"
wait "$hub"

# Manual pages and completions are where shells and man look for them.
for page in potluck potluck-fit potluck-hub-serve; do
  ls "$prefix/share/man/man1/$page.1"* > /dev/null
done
grep --quiet release "$prefix/share/bash-completion/completions/potluck"
test -s "$prefix/share/zsh/vendor-completions/_potluck"
test -s "$prefix/share/fish/vendor_completions.d/potluck.fish"
echo "the command works"
