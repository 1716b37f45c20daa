#!/bin/sh
# Runs once, when the volume of PostgreSQL is new: the role that owns the database and migrates, and the one with which api and workers run.
# Neither is a superuser: whoever became one of them could not run a program on the host of the database.
set -eu
psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=postgres --quiet <<SQL
\set owner_password \`cat "$SECRETS/owner_password"\`
\set app_password \`cat "$SECRETS/app_password"\`
CREATE ROLE muster_owner LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'owner_password';
CREATE ROLE muster_app LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'app_password';
CREATE DATABASE muster OWNER muster_owner;
REVOKE CONNECT ON DATABASE muster FROM PUBLIC;
GRANT CONNECT ON DATABASE muster TO muster_app;
SQL
