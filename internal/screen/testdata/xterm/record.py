#!/usr/bin/env python3
# Records what programs write to a terminal, into NAME.raw beside this file.
# A change of the terminal's size is written as NUL SIZE rows,cols NUL.
# What is recorded differs from run to run: record.py NAME... makes only those.
import fcntl, os, pty, select, signal, struct, sys, tempfile, termios, time

HERE = os.path.dirname(os.path.abspath(__file__))
MOST = 12000  # bytes kept of one recording
ENV = dict(PATH=os.environ['PATH'], TERM='xterm-256color', LANG='C.UTF-8', LC_ALL='C.UTF-8', PS1='$ ', HOME='/nonexistent', USER='user')
TEXT = ''.join('line %d: the quick brown fox 日本語 é %s\n' % (i, 'x' * (i % 90)) for i in range(60))
CODE = '#include <stdio.h>\nint main(int argc, char **argv) {\n\tprintf("wide: 漢字 %d\\n", 42); /* a comment */\n\treturn 0;\n}\n' * 5
WIDE = r'''
import time
print("漢字かな交じり文 "*4)
print("emoji 😀 🚀 ok")
print("한국어 "*9)
print("\x1b[10;10H漢字\x1b[12;1H漢字漢字\x1b[12;3H\x1b[P\x1b[14;1Habcdef\x1b[14;3H\x1b[2@漢\x1b[16;1Hａｂｃ │┌┐└┘ ░▒▓", flush=True)
time.sleep(9)'''
COLOURS = r'''printf '\033[1mbold\033[22m \033[2mdim\033[22m \033[3mitalic\033[23m \033[4munder\033[24m \033[7mreverse\033[27m \033[9mstruck\033[29m\n'
for i in 0 1 7 8 9 15 16 100 200 255; do printf "\033[38;5;${i}m$i \033[48;5;${i}m \033[0m"; done
printf '\n\033[38;2;9;8;7mtrue\033[0m \033[31;44mboth\033[0m \033[91;104mbright\033[0m\n\033(0lqqqk\033(B\n'; sleep 9'''
RECORDINGS = {
    'editor': (['vim', '-u', 'NONE', '-n', '-N', '-c', 'syntax on', 'code.c'], [b'j', b'A typed\x1b', b':set nu\r', b'/wide\r', b'\x06']),
    'editor-left': (['sh', '-c', 'echo before; vim -u NONE -n -N text.txt; echo after; sleep 9'], [b'dd', b':q!\r']),
    'editor-split-resized': (['vim', '-u', 'NONE', '-n', '-N', '-O', 'code.c', 'text.txt'], [b'\x17w', b'5j', b'v3j', (20, 60), b'\x1b', (30, 100), b'\x0c']),
    'pager': (['less', '-R', 'text.txt'], [b' ', b'j', b'/fox\r', b'b']),
    'pager-resized': (['less', '-N', 'text.txt'], [b' ', (15, 50), b'r', b'\x0c']),
    'monitor': (['top', '-d', '1', '-n', '9', '-p', '2,3'], [b'1', b'z', b'x']),
    'multiplexer': (['tmux', '-L', 'record', '-f', '/dev/null', 'new', 'sh'],
                    [b'echo hello\r', b'\x02%', b'seq 40\r', b'\x02"', b'printf "\\033[1;35m\xe6\xbc\xa2\xe5\xad\x97\\033[0m\\n"\r']),
    'shell': (['bash', '--norc', '--noprofile'], [b'ls --color=always -d /usr /etc\r', b'echo long ' + b'word ' * 30 + b'\r', b'\x1b[A\x1b[D\x1b[D', b'\x03', b'seq 30\r']),
    'colours': (['sh', '-c', COLOURS], []),
    'wide': (['python3', '-c', WIDE], []),
}

# Not of a program: corners, and one known difference each.
WRITTEN = {
    'difference-wide-last': '漢' * 40 + '字\r\nnext',
    'wide-last': 'x' * 78 + '漢\r\nnext',
    'difference-narrower': ('word ' * 15 + '\r\n') * 3 + '\0SIZE24,40\0',
    'difference-left-twice': '\x1b[5;5H\x1b7\x1b[10;10H\x1b[?1049l*',
}


def record(name, command, steps, rows=24, cols=80):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, ENV)
    size = lambda r, c: fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', r, c, 0, 0))
    size(rows, cols)
    data = b''

    def read(seconds):
        nonlocal data
        end = time.time() + seconds
        while time.time() < end:
            if select.select([fd], [], [], 0.1)[0]:
                try:
                    data += os.read(fd, 65536)
                except OSError:
                    return
    read(1.5)
    for s in steps:
        if isinstance(s, tuple):
            size(*s)
            data += b'\0SIZE%d,%d\0' % s
        else:
            os.write(fd, s)
        read(0.8)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with open(os.path.join(HERE, name + '.raw'), 'wb') as f:
        f.write(data[:MOST])


for name, text in WRITTEN.items():
    with open(os.path.join(HERE, name + '.raw'), 'wb') as f:
        f.write(text.encode())
with tempfile.TemporaryDirectory() as d:
    os.chdir(d)
    open('text.txt', 'w').write(TEXT)
    open('code.c', 'w').write(CODE)
    for name in sys.argv[1:] or RECORDINGS:
        record(name, *RECORDINGS[name])
