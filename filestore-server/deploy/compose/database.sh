#!/bin/sh
# Makes the user and the database of filestore. The user owns the database, and is no superuser.
#
# PostgreSQL's image runs it when it makes its cluster. Needs psql, an administrator in POSTGRES_USER, and
# FILESTORE_DATABASE_PASSWORD.
set -eu

psql -X -q -v ON_ERROR_STOP=1 -v password="$FILESTORE_DATABASE_PASSWORD" -U "$POSTGRES_USER" -d postgres <<'SQL'
CREATE ROLE filestore LOGIN PASSWORD :'password';
CREATE DATABASE filestore OWNER filestore ENCODING 'UTF8' TEMPLATE template0;
SQL
