#!/bin/sh
# Makes the secrets of docker-compose.yml in the folder `secrets`, a folder for each who may read them. What is there already stays as it is.
# Keep a copy of secrets/muster/encryption_keys elsewhere: without it the tokens in the database are lost.
set -eu
given=$(sed -n 's/^ *\([A-Z_]*\)_FILE: .*/\1/p' "$(dirname "$0")/../docker-compose.yml")
cd "${1:-.}"

# Containers get secrets as files only. Values in .env, where version 0.1.0 had them, would be left out without a word, and the tokens in its database need its key.
for name in $given; do
  if grep -q "^ *\(export \)\?$name *=." .env 2>/dev/null; then
    echo "$name in .env is not read. Write its value into a file of secrets/, as docs/upgrading.md says, and take it out of .env." >&2
    refused=1
  fi
done
[ -z "${refused:-}" ] || exit 1

random() { od -An -tx1 -N24 /dev/urandom | tr -d ' \n'; }

# keep <file> <text>: the containers' users read the file, and nobody else on this machine comes into its folder.
keep() {
  [ -e "secrets/$1" ] && return
  printf '%s\n' "$2" >"secrets/$1"
  chmod 644 "secrets/$1"
}

mkdir -p secrets
chmod 700 secrets
for folder in postgres redis migrate muster api; do mkdir -p "secrets/$folder"; chmod 755 "secrets/$folder"; done

keep postgres/superuser_password "$(random)"
keep postgres/owner_password "$(random)"
keep postgres/app_password "$(random)"
keep redis/password "$(random)"
keep migrate/database_url "postgres://muster_owner:$(cat secrets/postgres/owner_password)@postgres:5432/muster"
keep muster/database_url "postgres://muster_app:$(cat secrets/postgres/app_password)@postgres:5432/muster"
keep muster/redis_url "redis://:$(cat secrets/redis/password)@redis:6379"
keep muster/encryption_keys "k1:$(head -c 32 /dev/urandom | base64 | tr -d '\n')"
keep api/admin_token "$(random)"
