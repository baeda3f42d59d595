use super::*;

/// Command lines with a secret at `@@`. Blanks separate arguments; `␣` is a blank inside one.
const SECRET_LINES: &[&str] = &[
    "curl -u bob:@@ https://h/x",
    "curl -ubob:@@ https://h/x",
    "curl --user bob:@@ https://h",
    "curl --user=bob:@@ https://h",
    "curl -x p:80 -U bob:@@ https://h",
    "curl --proxy-user bob:@@ https://h",
    "curl -H Authorization:␣Bearer␣@@ https://h",
    "curl -H Authorization:␣Basic␣@@ https://h",
    "curl -H Authorization:␣token␣@@ https://h",
    "curl -H Authorization:␣@@ https://h",
    "curl -H X-Api-Key:␣@@ https://h",
    "curl -H PRIVATE-TOKEN:␣@@ https://h",
    "curl -H Cookie:␣theme=dark;␣sid=@@ https://h",
    "curl --cookie sid=@@ https://h",
    "curl -b sid=@@ https://h",
    "curl --oauth2-bearer @@ https://h",
    "curl -E client.pem:@@ https://h",
    "curl -d user=bob&password=@@ https://h",
    "curl -d {\"user\":\"bob\",\"pass\":\"@@\"} https://h",
    "wget --password=@@ https://h",
    "wget --http-password @@ https://h",
    "wget --header=Authorization:␣token␣@@ https://h",
    "wget https://bob:@@@h/x",
    "wget https://h/x?X-Amz-Signature=@@&a=1",
    "wget https://h/x?sv=2022&sig=@@",
    "wget https://h/x?GoogleAccessId=a&Signature=@@",
    "git clone https://oauth2:@@@gitlab.com/a/b.git",
    "git -c http.extraHeader=Authorization:␣Basic␣@@ fetch",
    "git config --global github.token @@",
    "mysql -uroot -p@@ db",
    "mysqldump --password=@@ db",
    "sshpass -p @@ ssh h",
    "sshpass -p@@ ssh h",
    "srun -n 1 sshpass -p @@ ssh h",
    "ldapsearch -D cn=x -w @@ -b dc=x",
    "psql postgresql://bob:@@@h/db",
    "psql host=h␣password=@@␣dbname=x",
    "psql host=h␣password␣=␣@@␣dbname=x",
    "env PGPASSWORD=@@ psql -h h",
    "redis-cli -a @@ ping",
    "mongosh -u bob -p @@ db",
    "sqlplus bob/@@@db",
    "sqlcmd -S h -U bob -P @@",
    "docker login -u bob -p @@ registry",
    "docker run -e DB_PW=@@ image",
    "docker build --build-arg NPM_TOKEN=@@ .",
    "skopeo copy --src-creds bob:@@ docker://a docker://b",
    "helm registry login -u bob --password @@ h",
    "kubectl --token @@ get pods",
    "kubectl --token=@@ get pods",
    "kubectl create secret generic x --from-literal=user=@@",
    "oc login -u bob -p @@ https://h",
    "aws configure set aws_secret_access_key @@",
    "gcloud auth login --access-token @@",
    "az login --service-principal -u id -p @@ --tenant t",
    "az storage blob list --account-key @@ --account-name n",
    "az storage blob list --connection-string Name=x;AccountKey=@@;End=y",
    "az storage blob list --sas-token @@",
    "ansible-playbook site.yml -e ansible_become_pass=@@",
    "ansible-playbook site.yml --extra-vars {\"ansible_password\":␣\"@@\"}",
    "openssl enc -aes-256-cbc -pass pass:@@ -in a",
    "openssl rsa -passin pass:@@ -in key.pem",
    "openssl enc -k @@ -in a",
    "lftp -u bob,@@ h",
    "lftp -c open␣-u␣bob,@@␣h;␣ls",
    "smbclient //h/s -U bob%@@",
    "mount -t cifs -o username=bob,password=@@ //h/s /mnt",
    "zip -P @@ a.zip b",
    "7z x -p@@ a.7z",
    "gpg --batch --passphrase @@ -d a.gpg",
    "keytool -list -storepass @@ -keystore k",
    "twine upload -u bob -p @@ dist/x",
    "htpasswd -b file bob @@",
    "vault login @@",
    "snmpget -v3 -A @@ h oid",
    "xfreerdp /u:bob /p:@@ /v:h",
    "rclone copy --s3-secret-access-key @@ a: b:",
    "terraform apply -var db_password=@@",
    "login --password @@",
    "login --password -@@",
    "login --passcode=@@",
    "login --pw=@@",
    "login pass=@@",
    "login bob:@@@h:5432/db",
    "login {\"pass\":␣\"@@\"}",
    "login {'name':␣'DB_PASSWORD',␣'secret':␣'@@'}",
    "SSHPASS=@@ ssh h",
    "sh -c echo␣@@␣|␣sudo␣-S␣true",
    "sh -c printf␣'%s'␣'@@'␣|␣docker␣login␣-u␣bob␣--password-stdin",
    "sh -c read␣-r␣TOKEN␣<<<␣@@",
    "sh -c mysql␣-uroot␣-p@@␣db␣<␣dump.sql",
    "sh -c export␣API_KEY=@@;␣model",
    "sh -c f␣--password='a␣@@'␣g",
    "bash -lc curl␣-u␣bob:@@␣https://h",
    "ssh h mysql␣-p@@",
    "sbatch --export=ALL,DB_PASSWORD=@@ run.sh",
    "sbatch --wrap model␣--token␣@@",
    "python3 -c password␣=␣\"@@\"",
    "python3 -c connect(host='h',␣password='@@')",
    "python3 -c requests.get(u,␣auth=('bob',␣'@@'))",
    "python3 -c db[\"password\"]␣=␣'@@'",
    "perl -e $password␣=␣\"@@\";",
    "Rscript -e Sys.setenv(TOKEN␣=␣\"@@\")",
];

/// Secrets known by their shape.
const SHAPES: &[&str] = &[
    "AKIAABCDEFGHIJKLMNOP",
    "ghp_abcdefghijklmnopqrstuvwxyz",
    "github_pat_11ABCDEFG0abcdefghij",
    "glpat-abcdefghij0123456789",
    "xoxb-1234567890-abcdefghij",
    "hf_abcdefghijklmnop1234",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
];

/// Command lines without a secret.
const PLAIN_LINES: &[&str] = &[
    "model --author me --tokenizer bpe --max-tokens 512 --max-tokens=512",
    "model --password-file=/p --no-password x -o git@host:repo",
    "ssh://git@host/r https://host:8080/a@b x=1 --compass north --bypass=1",
    "model --user alice --username=bob -u carol -p 8080 -p8080 --port 5432",
    "rsync -av --password-file /etc/rsync.pass a@h:/data/x:y /out",
    "curl --cookie-jar jar.txt -o out.nc https://h/data.nc?level=500&key=temperature",
    "curl -b cookies.txt -H Accept:␣text/plain -u alice https://h",
    "docker run -u 1000:1000 -p 8080:80 --user alice:staff -v /a:/b:ro repo/image:1.2@sha256:0123abcd",
    "git checkout 3f786850e387550fdab836ed7e6dc881de23001b",
    "git clone git@github.com:a/b.git /home/me/project",
    "git log --author=me --pretty=oneline",
    "mkdir -p out/a && cp -p a b",
    "mysql -p database",
    "gcc -pthread -print-search-dirs -O3 -parallel x.c",
    "ncks -v t -d time,0,3 in.nc out.nc",
    "cdo -sellonlatbox,0,10,40,50 -selname,t in.nc out.nc",
    "ffmpeg -pass 2 -i in.mp4 out.mp4",
    "filter --low-pass 0.5 --highpass=0.1 --passes 3",
    "sort --key=2 --sort-key step -k 3 x",
    "model --key step=3 --group-key region --primary-key id",
    "mpiexec -n 4 pw.x -in scf.in -nk 2",
    "srun --user alice --uid=1000 --time 12:30 ./model",
    "sbatch --dependency=afterok:123 --export=ALL,OMP_NUM_THREADS=4 run.sh",
    "sh -c cd␣$PWD␣&&␣make␣pwd=1␣&&␣ls␣`pwd`",
    "sh -c cd␣\"$(pwd)\"␣&&␣./a.out␣<␣in␣>␣out",
    "sh -c echo␣done␣|␣tee␣log",
    "sh -c cat␣in␣|␣sort␣|␣uniq␣-c",
    "sh -c mysql␣--password=$DB_PASSWORD␣db",
    "sh -c curl␣-u␣bob:$TOKEN␣https://h",
    "/scratch/me/token/run7/a.out /home/me/secrets-of-the-sea/in.nc",
    "PWD=/home/me OLDPWD=/tmp model",
    "openssl rsa -passin file:/etc/pw -in key.pem -k",
    "ssh -i /home/me/.ssh/id_rsa h --ssh-key /home/me/.ssh/id_ed25519",
    "ansible-playbook --vault-password-file ~/.vault site.yml",
    "gcloud auth activate-service-account --key-file=/k.json",
    "docker login -u bob --password-stdin registry",
    "model basic simulation bearer capacity",
    "model a:b c:d:e 12:30@station mailto:me@host.org doi:10.5194/gmd-1-2@x",
    "model --signature 1.0 --sig 0.5 --auth basic --auth kerberos",
    "python3 -c import␣sys;␣print(sys.argv)␣#␣the␣key␣of␣it",
    "npm install left-pad@npm:other@1.2.3 disk-of-something-very-long-2",
    "model --token-type bearer --password-length 12 --secret-name x",
    "forecast --experiment 0123456789abcdef0123456789abcdef --seed 12345678 --date 20260101",
    "ftp -n host",
    "kubectl get secrets -n model",
    "fieldstone archive s run=a variable=t step=0 key=b",
];

/// The arguments of a line.
fn arguments(line: &str, secret: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace('␣', " ").replace("@@", secret)).collect()
}

fn masked(argv: &[&str]) -> Vec<String> {
    let argv: Vec<String> = argv.iter().map(|argument| (*argument).to_owned()).collect();
    let masked = mask(&argv, &["from-the-environment".to_owned()]);
    masked.argv.iter().map(|text| text.replace("${FIELDSTONE_SECRET_", "<").replace('}', ">")).collect()
}

#[test]
fn of_a_secret_in_an_ordinary_command_line_nothing_is_left() {
    for secret in ["Zq7kWm2xPd", "hunter-2.two", "S3cret!Value"] {
        let mut leaks = Vec::new();
        for line in SECRET_LINES {
            let argv = arguments(line, secret);
            let once = mask(&argv, &[]);
            let again = mask(&once.argv, &[]);
            assert_eq!((&again.argv, again.masked.len()), (&once.argv, 0), "masked arguments stay masked");
            let text = hide(&argv.join(" "));
            if once.argv.iter().any(|argument| argument.contains(secret)) {
                leaks.push(format!("{:?}", once.argv));
            }
            // As one text, a blank in an argument is a blank between two.
            if text.contains(secret) && !line.contains('␣') {
                leaks.push(text);
            }
        }
        assert!(leaks.is_empty(), "{secret}: {} lines keep it:\n{}", leaks.len(), leaks.join("\n"));
    }
}

#[test]
fn what_has_the_shape_of_a_secret_is_masked_wherever_it_stands() {
    for secret in SHAPES {
        for text in
            [(*secret).to_owned(), format!("--x={secret}"), format!("a '{secret}', b"), format!("m:{secret}")]
        {
            assert!(!hide(&text).contains(secret), "{text}");
            assert!(!mask(&["p".into(), text.clone()], &[]).argv[1].contains(secret), "{text}");
        }
    }
}

#[test]
fn ordinary_command_lines_stay_as_they_are() {
    let mut changed = Vec::new();
    for line in PLAIN_LINES {
        let argv = arguments(line, "");
        let masked = mask(&argv, &[]);
        if masked.argv != argv || !masked.masked.is_empty() {
            changed.push(format!("{:?}", masked.argv));
        }
        let hidden = hide(&argv.join(" "));
        if hidden != argv.join(" ") {
            changed.push(hidden);
        }
    }
    assert!(changed.is_empty(), "{} lines are masked:\n{}", changed.len(), changed.join("\n"));
}

#[test]
fn what_stands_for_a_secret_leaves_the_rest_of_the_argument() {
    let cases: [(&[&str], &[&str]); 18] = [
        (&["a", "--password=x y"], &["a", "--password=<1>"]),
        (&["a", "--token", "X", "in"], &["a", "--token", "<1>", "in"]),
        (&["a", "--api-key", "X", "--secret-key=Y"], &["a", "--api-key", "<1>", "--secret-key=<2>"]),
        (&["env", "DB_PASSWD=X", "b"], &["env", "DB_PASSWD=<1>", "b"]),
        (&["a", "--authToken", "X"], &["a", "--authToken", "<1>"]),
        (&["a", "https://me:X@host/p"], &["a", "https://<1>@host/p"]),
        (&["a", "https://me:X/Y@host/p"], &["a", "https://<1>@host/p"]),
        (&["a", "https://h/?q=1&access_token=X&b=2"], &["a", "https://h/?q=1&access_token=<1>&b=2"]),
        (&["sh", "-c", "f --password X g"], &["sh", "-c", "f --password <1> g"]),
        (&["sh", "-c", "f --password='X Y' g"], &["sh", "-c", "f --password='<1>' g"]),
        (&["sh", "-c", "f; TOKEN=Y g"], &["sh", "-c", "f; TOKEN=<1> g"]),
        (&["a", r#"{"secret": "X", "n": 1}"#], &["a", r#"{"secret": "<1>", "n": 1>"#]),
        (&["curl", "-H", "Authorization: Bearer X"], &["curl", "-H", "Authorization: Bearer <1>"]),
        (&["a", "AKIAABCDEFGHIJKLMNOP"], &["a", "<1>"]),
        (&["a", "xfrom-the-environmenty"], &["a", "x<1>y"]),
        (&["a", "--key=ghp_abcdefghijklmnopqrstuvwxyz"], &["a", "--key=<1>"]),
        (&["curl", "-u", "me:X", "https://h"], &["curl", "-u", "me:<1>", "https://h"]),
        (&["sh", "-c", "echo X | sudo -S make"], &["sh", "-c", "echo <1> | sudo -S make"]),
    ];
    for (argv, expected) in cases {
        assert_eq!(masked(argv), expected, "{argv:?}");
    }
}

#[test]
fn the_name_of_the_program_and_text_that_looks_masked_are_text() {
    assert_eq!(masked(&["--password", "x"]), ["--password", "x"]);
    let argv = ["a".to_owned(), "${FIELDSTONE_SECRET_1}".to_owned()];
    assert_eq!(mask(&argv, &[]).masked, Vec::<usize>::new());
    let argv = ["a".to_owned(), "--password=${FIELDSTONE_SECRET_4}".to_owned(), "--token=x".to_owned()];
    let masked = mask(&argv, &[]);
    assert_eq!((&*masked.argv[2], masked.masked), ("--token=${FIELDSTONE_SECRET_5}", vec![2]));
}

#[test]
fn texts_are_hidden_whatever_they_hold() {
    assert_eq!(hide("https://me:x@host/r.git"), "https://***@host/r.git");
    for text in [
        "",
        "é=ü",
        "token",
        "token=",
        "://",
        "://@",
        "password:",
        "\"password\":\"",
        "--token é",
        "pass=\\",
        "'",
        "\\",
        "a:@",
        "é:é@é",
        "-u é:ü",
        "| <<< sudo -S",
        "password = b",
        "pass = \\\"",
        "echo é | sudo -S",
        "-----BEGIN ",
        "Authorization:",
        "Authorization: Basic",
        "pass=(",
        "-p",
        "mysql -p",
    ] {
        drop(hide(text));
        drop(mask(&["x".to_owned(), text.to_owned(), text.to_owned()], &[]));
    }
}

/// Properties, each with its remaining text.
#[test]
fn of_properties_the_secrets_are_hidden_and_the_rest_stays() {
    let text = |text: &str| Value::Text(text.to_owned());
    let hidden = [
        ("password", "X"),
        ("db_password", "X"),
        ("api_key", "X-y"),
        ("API_KEY", "x"),
        ("MODEL_KEY", "hush"),
        ("SSHPASS", "x"),
        ("MYPASS", "x"),
        ("DB_PW", "x"),
        ("GH_PAT", "x"),
        ("token", "x"),
        ("secret", "x"),
        ("clientSecret", "x"),
        ("passphrase", "x y"),
        ("PGPASSWORD", "x"),
        ("MYSQL_PWD", "x"),
        ("http_cookie", "a=b"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("pass", "x"),
        ("jwt", "x"),
        ("credentials", "x"),
    ];
    for (name, value) in hidden {
        assert_eq!(shown_value(name, &text(value)), text(HIDDEN), "{name}");
    }
    let kept = [
        ("name", "model"),
        ("cwd", "/home/me/token/run"),
        ("PWD", "/home/me"),
        ("OLDPWD", "/tmp"),
        ("commit", "3f786850e387550fdab836ed7e6dc881de23001b"),
        ("author", "me"),
        ("user", "alice"),
        ("port", "5432"),
        ("key", "step"),
        ("sort_key", "step"),
        ("token_type", "bearer"),
        ("password_file", "/etc/pw"),
        ("low_pass", "0.5"),
        ("compass", "north"),
        ("checksum", "xxh3:0123456789abcdef0123456789abcdef"),
        ("XAUTHORITY", "/home/me/.Xauthority"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-1/agent.2"),
        ("PATH", "/usr/bin:/bin"),
        ("SLURM_JOB_NODELIST", "n[1-4]"),
        ("remote", "https://github.com/a/b.git"),
    ];
    for (name, value) in kept {
        assert_eq!(shown_value(name, &text(value)), text(value), "{name}");
    }
    let map = |pairs: &[(&str, Value)]| {
        Value::Map(pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    };
    let nested = map(&[
        ("url", text("https://u:X@h/")),
        ("nested", map(&[("token", text("X")), ("n", Value::Int(3))])),
        ("list", Value::List(vec![text("--password"), text("X"), text("b")])),
        ("pair", map(&[("name", text("DB_PASSWORD")), ("value", text("X"))])),
        ("password", Value::Int(1234)),
        ("secret", map(&[("a", text("X"))])),
    ]);
    let expected = map(&[
        ("url", text("https://***@h/")),
        ("nested", map(&[("token", text("***")), ("n", Value::Int(3))])),
        ("list", Value::List(vec![text("--password"), text("***"), text("b")])),
        ("pair", map(&[("name", text("DB_PASSWORD")), ("value", text("***"))])),
        ("password", text("***")),
        ("secret", map(&[("a", text("***"))])),
    ]);
    assert_eq!(shown_value("params", &nested), expected);
    let argv = |words: &[&str]| Value::List(words.iter().map(|word| text(word)).collect());
    let props = [
        ("masked".to_owned(), Value::List(vec![Value::Int(1)])),
        ("argv".to_owned(), argv(&["a", "--token=${FIELDSTONE_SECRET_1}", "--password", "X"])),
    ];
    let clean = shown(&props);
    assert_eq!(clean[0].1, Value::List(vec![Value::Int(1), Value::Int(3)]));
    let words = ["a", "--token=${FIELDSTONE_SECRET_1}", "--password", "${FIELDSTONE_SECRET_2}"];
    assert_eq!(clean[1].1, argv(&words));
}
