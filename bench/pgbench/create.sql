-- -D base=DIRECTORY -D n=0: names of its own for each client
\set n0 1000000000000000 + :client_id * 100000000 + :n + 1
\set n :n + 1
INSERT INTO meta (pid, name, type, mode, uid, gid, size) VALUES (:base, :n0, 'f', 420, 1000, 1000, 0);
