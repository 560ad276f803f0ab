-- -D base=DIRECTORY -D n=0: names of its own for each client
\set n0 1000000000000000 + :client_id * 100000000 + :n + 1
\set n1 1000000000000000 + :client_id * 100000000 + :n + 2
\set n2 1000000000000000 + :client_id * 100000000 + :n + 3
\set n3 1000000000000000 + :client_id * 100000000 + :n + 4
\set n4 1000000000000000 + :client_id * 100000000 + :n + 5
\set n5 1000000000000000 + :client_id * 100000000 + :n + 6
\set n6 1000000000000000 + :client_id * 100000000 + :n + 7
\set n7 1000000000000000 + :client_id * 100000000 + :n + 8
\set n :n + 8
\startpipeline
INSERT INTO meta (pid, name, type, mode, uid, gid, size) VALUES (:base, :n0, 'f', 420, 1000, 1000, 0);
INSERT INTO meta (pid, name, type, mode, uid, gid, size) VALUES (:base, :n1, 'f', 420, 1000, 1000, 0);
INSERT INTO meta (pid, name, type, mode, uid, gid, size) VALUES (:base, :n2, 'f', 420, 1000, 1000, 0);
INSERT INTO meta (pid, name, type, mode, uid, gid, size) VALUES (:base, :n3, 'f', 420, 1000, 1000, 0);
INSERT INTO meta (pid, name, type, mode, uid, gid, size) VALUES (:base, :n4, 'f', 420, 1000, 1000, 0);
INSERT INTO meta (pid, name, type, mode, uid, gid, size) VALUES (:base, :n5, 'f', 420, 1000, 1000, 0);
INSERT INTO meta (pid, name, type, mode, uid, gid, size) VALUES (:base, :n6, 'f', 420, 1000, 1000, 0);
INSERT INTO meta (pid, name, type, mode, uid, gid, size) VALUES (:base, :n7, 'f', 420, 1000, 1000, 0);
\endpipeline
